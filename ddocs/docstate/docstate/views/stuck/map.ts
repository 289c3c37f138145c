export { emitStuck as default } from '../../../../lib/emit-stuck.ts'
