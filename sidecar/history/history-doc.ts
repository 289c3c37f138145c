import type { EventMap } from '../events/map.ts'
import type { Doc } from '../couch/documents.ts'

/** Document of an ended entry. It has no `state`, so no handler takes it. */
export interface HistoryDoc extends Doc {
  readonly _id: string
  readonly type: 'history'
  /** Database, id and type of the handled document. */
  readonly database: string
  readonly doc: string
  readonly of_type: string
  /** The ended state, and the next one. Both are equal if the handler left the document in its state. */
  readonly from: string
  readonly to: string
  /** Mode of the handler; `time` if the timeout of the state ended it. */
  readonly by: 'safe' | 'unsafe' | 'time'
  readonly worker: string
  /** When the entry ended, ISO 8601. */
  readonly at: string
  /** Duration of the last run, milliseconds. */
  readonly ms: number
  /** Number of earlier attempts that failed. */
  readonly failed_tries: number
  /** `ctx.key`. */
  readonly key: string
  /** The revision that ended the entry. */
  readonly rev: string
  /** Version of the handler's code, if declared. */
  readonly version?: string
  /** Reason, if the entry ended in `error`. */
  readonly failure?: { readonly code: string; readonly reason: string }
}

/** Prefix of all ids of one document's history. */
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
