import { isObject, type Doc } from './document.ts'
import { statusOf, timeOf, type Status } from './status.ts'

/** Statuses that only an operator or the next attempt ends. */
export const STUCK: readonly Status[] = ['failed', 'parked', 'retry']

/** A document that waits for an operator or for its next attempt. */
export interface Stuck {
  readonly status: Status
  /** State in which its handler failed, or was due. */
  readonly state: string
  /** Code of the failure; null without one. */
  readonly code: string | null
  /** ISO 8601; null if unknown. */
  readonly since: string | null
}

/** Later than any time: a document without a known time must never count as the oldest. */
export const NEVER_MS = 8.64e15
/** Maximum length in characters: a client may have written the code. */
const MOST_CODE = 100

/** Why a document is stuck; undefined if it is not. Does not throw, although a client may have written any value. */
export function stuckOf(doc: Doc): Stuck | undefined {
  const [status] = statusOf(doc)
  if (STUCK.indexOf(status) < 0) return undefined
  const { failure, failed_in, failing_since, parked } = isObject(doc.docstate) ? doc.docstate : ({} as Doc)
  const reason = partsOf(status === 'failed' ? doc.error : failure)
  const since = {
    failed: () => timeOf(reason.at),
    parked: () => timeOf(partsOf(parked).at),
    retry: () => timeOf(failing_since) || timeOf(reason.at),
  }[status as 'failed' | 'parked' | 'retry']()
  const code = typeof reason.code === 'string' ? reason.code.slice(0, MOST_CODE) : null
  return { status, state: String(status === 'failed' ? failed_in : doc.state), code, since }
}

const partsOf = (record: unknown): Readonly<Record<string, unknown>> => (isObject(record) ? record : {})
