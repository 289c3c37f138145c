import type { Doc } from './document.ts'
import { NEVER_MS, stuckOf } from './stuck.ts'

/**
 * Map of the view `stuck`: emits `[type, state, status, code, since]` for every stuck document with a type and a state.
 * The value is the time of `since` in milliseconds since 1970. The view shows operators what to repair, even if many
 * documents are stuck.
 */
export function emitStuck(doc: Doc): void {
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') return
  const stuck = stuckOf(doc)
  if (!stuck) return
  const at = stuck.since === null ? NaN : Date.parse(stuck.since)
  emit([type, stuck.state, stuck.status, stuck.code, stuck.since], isNaN(at) ? NEVER_MS : at)
}
