import type { EventMap } from '../events/map.ts'
import type { Doc } from '../couch/documents.ts'

/** An entry that has ended, as it is kept. It has no `state`: no handler takes it. */
export interface HistoryDoc extends Doc {
  readonly _id: string
  readonly type: 'history'
  /** Of which document. */
  readonly database: string
  readonly doc: string
  readonly of_type: string
  /** The state that has ended, and the next one; the same where its handler has left the document in it. */
  readonly from: string
  readonly to: string
  /** Of the handler; `time` where the state has ended by its time. */
  readonly by: 'safe' | 'unsafe' | 'time'
  readonly worker: string
  /** When it ended, ISO 8601. */
  readonly at: string
  /** How long the last run took, milliseconds. */
  readonly ms: number
  /** Tries that failed before. */
  readonly failed_tries: number
  /** `ctx.key`. */
  readonly key: string
  /** The revision that ended it. */
  readonly rev: string
  /** Of the handler's code, if it says one. */
  readonly version?: string
  /** Why it ended in `error`. */
  readonly failure?: { readonly code: string; readonly reason: string }
}

/** What all ids of one document's history begin with. */
export const historyPrefix = (database: string, id: string): string =>
  `${encodeURIComponent(database)}/${encodeURIComponent(id)}/`

/** @param at ISO 8601 */
export function historyDoc(ended: Readonly<EventMap['entry:ended']>, worker: string, at: string): HistoryDoc {
  const { database, id, type, state, next, mode, ms, attempts, key, rev, version, code, reason } = ended
  return {
    _id: `${historyPrefix(database, id)}${at}/${key.slice(0, 8)}`,
    ...{ type: 'history', database, doc: id, of_type: type, from: state, to: next, by: mode, worker, at },
    ...{ ms: Math.round(ms), failed_tries: attempts, key, rev },
    ...(version !== null && { version }),
    ...(code !== null && { failure: { code, reason: reason ?? '' } }),
  }
}
