export { emitConflicts as default } from '../../../../lib/conflicts.ts'
