import { isObject } from '../../../ddocs/lib/document.ts'
import { statusOf, type Status } from '../../../ddocs/lib/status.ts'
import { stuckOf } from '../../../ddocs/lib/stuck.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'

/** Status of a document, for operators. */
export interface Standing {
  readonly id: string
  readonly type: string
  readonly state: string
  readonly status: Status
  /** State in which its handler failed or was to run: in `error`, not the document's own state. */
  readonly handledIn: string
  /** When the status began, ISO 8601; undefined if not recorded. */
  readonly since: string | undefined
  /** Code of the failure, if any. */
  readonly code: string | undefined
  readonly reason: string | undefined
  /** When the next automatic change is due, ISO 8601; undefined if none is due or its time is unknown. */
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

/** Clients may have written any value. */
const textOf = (field: unknown): string | undefined => (typeof field === 'string' ? field : undefined)
