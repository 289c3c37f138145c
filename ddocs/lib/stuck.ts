import { isObject, type Doc } from './document.ts'
import { statusOf, timeOf, type Status } from './status.ts'

/** With which only a person, or the next try, goes on. */
export const STUCK: readonly Status[] = ['failed', 'parked', 'retry']

/** A document that does not go on by itself, or only later. */
export interface Stuck {
  readonly status: Status
  /** In which its handler failed, or was to run. */
  readonly state: string
  /** Of the failure, if there was one. */
  readonly code: string | null
  /** ISO 8601; null where nothing tells. */
  readonly since: string | null
}

/** Later than any time: of one that is not known the oldest is never it. */
export const NEVER_MS = 8.64e15
/** Of a code that a client has written. */
const MOST_CODE = 100

/** What a client has written there may be anything, and this does not throw. */
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
