import type { Doc } from './document.ts'
import { statusOf } from './status.ts'

/**
 * The map of the view `by_state`: key `[type, state, status, at]`, for every document with a type and a state. By it
 * the sidecar finds what waits for it, and people count what is where.
 */
export function emitByState(doc: Doc): void {
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') return
  const [status, at] = statusOf(doc)
  emit([type, state, status, at], null)
}
