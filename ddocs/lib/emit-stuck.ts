import type { Doc } from './document.ts'
import { NEVER_MS, stuckOf } from './stuck.ts'

/**
 * The map of the view `stuck`: key `[type, state, status, code, since]`, and since when, in milliseconds since 1970, for
 * every document with a type and a state that is stuck. By it people see what is to be mended, however much it is.
 */
export function emitStuck(doc: Doc): void {
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') return
  const stuck = stuckOf(doc)
  if (!stuck) return
  const at = stuck.since === null ? NaN : Date.parse(stuck.since)
  emit([type, stuck.state, stuck.status, stuck.code, stuck.since], isNaN(at) ? NEVER_MS : at)
}
