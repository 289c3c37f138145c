export { emitByState as default } from '../../../../lib/by-state.ts'
