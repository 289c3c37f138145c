/**
 * The map of the view `conflicts`: key `[type, state]` as CouchDB shows it, for every document of which replication has
 * brought more than one last revision.
 */
import type { Doc } from './document.ts'

export function emitConflicts({ type, state, _conflicts }: Doc): void {
  if (_conflicts && typeof type === 'string') emit([type, state], null)
}
