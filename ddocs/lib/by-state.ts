import type { Doc } from './document.ts'
import { statusOf } from './status.ts'

/**
 * Map of the view `by_state`: emits `[type, state, status, at]` for every document with a type and a state. The sidecar
 * uses the view to find documents to handle, and operators use it to count documents.
 */
export function emitByState(doc: Doc): void {
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') return
  const [status, at] = statusOf(doc)
  emit([type, state, status, at], null)
}
