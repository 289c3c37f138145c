import { isObject } from '../../../ddocs/lib/document.ts'
import { statusOf, type Status } from '../../../ddocs/lib/status.ts'
import { stuckOf } from '../../../ddocs/lib/stuck.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'

/** What an operator wants to know of a document. */
export interface Standing {
  readonly id: string
  readonly type: string
  readonly state: string
  readonly status: Status
  /** In which its handler failed, or was to run: of a document in `error` not the state that it is in. */
  readonly handledIn: string
  /** Since when it stands so, ISO 8601; undefined where nothing tells. */
  readonly since: string | undefined
  /** Of the failure, if there was one. */
  readonly code: string | undefined
  readonly reason: string | undefined
  /** When something happens by itself, ISO 8601; undefined: nothing does, or it is not known when. */
  readonly nextAt: string | undefined
}

export function standingOf(doc: StoredDoc): Standing {
  const [status] = statusOf(doc)
  const docstate = docstateOf(doc)
  const error = isObject(doc.error) ? doc.error : {}
  const isOver = status === 'failed' || status === 'discarded'
  const failure = isOver ? error : docstate?.failure
  const claim = isClaim(docstate?.claim) ? docstate.claim : undefined
  const stuck = stuckOf(doc)
  const since: Partial<Record<Status, unknown>> = {
    claimed: claim?.at,
    handled: docstate?.handled,
    discarded: docstate?.discarded?.at,
  }
  const nextAt = { retry: docstate?.retry_at, timeout: docstate?.timeout_at, handled: docstate?.timeout_at }
  const reason = status === 'parked' ? docstate?.parked?.reason : failure?.reason
  return {
    id: doc._id,
    type: String(doc.type),
    state: String(doc.state),
    status,
    handledIn: isOver ? String(docstate?.failed_in) : String(doc.state),
    since: stuck ? (stuck.since ?? undefined) : textOf(since[status]),
    code: stuck ? (stuck.code ?? undefined) : textOf(failure?.code),
    reason: textOf(reason),
    nextAt: textOf((nextAt as Partial<Record<Status, unknown>>)[status]),
  }
}

/** What stands there may have been written by anyone. */
const textOf = (field: unknown): string | undefined => (typeof field === 'string' ? field : undefined)
