/**
 * Map of the view `conflicts`: emits `[type, state]` of the winning revision for every document with more than one leaf
 * revision. Replication causes such conflicts.
 */
import type { Doc } from './document.ts'

export function emitConflicts({ type, state, _conflicts }: Doc): void {
  if (_conflicts && typeof type === 'string') emit([type, state], null)
}
