/**
 * The map of the view `by_state`: key `[type, state, status, at]`, for every document with a type and a state. By it
 * the sidecar finds what waits for it, and people count what is where.
 *
 * status   at
 * ready    null                      no worker has begun with it
 * retry    `docstate.retry_at`       a try failed; the next one not before
 * timeout  `docstate.timeout_at`     the state ends then, and no worker has begun with it
 * claimed  `docstate.claim.at`       a worker has it since
 * parked   `docstate.parked.at`      a person has to decide, since
 * handled  `docstate.timeout_at`     done with, although it stays in the state, until then; null if that has no end
 * failed   `error.at`                in `error` since; the state in which it failed is `docstate.failed_in`
 * discarded  `docstate.discarded.at`  the same, by a person
 *
 * `docstate` is the engine's field (sidecar/docstate/types.ts). It counts only in the state it names. Whatever else
 * stands in these fields, the map does not throw: a document without its row would never be found.
 */
import { isObject, type Doc } from './document.ts'

export function emitByState(doc: Doc): void {
  const { type, state, docstate } = doc
  if (typeof type !== 'string' || typeof state !== 'string') return
  const [status, at] = statusOf(isObject(docstate) && docstate.state === state ? docstate : {}, doc.error)
  emit([type, state, status, at], null)
}

function statusOf(docstate: Readonly<Record<string, unknown>>, error: unknown): readonly [string, string | null] {
  const { handled, parked, claim, retry_at, timeout_at, failed_in, discarded } = docstate
  if (failed_in && discarded) return ['discarded', atOf(discarded)]
  if (failed_in) return ['failed', atOf(error)]
  if (handled) return ['handled', timeOf(timeout_at)]
  if (parked) return ['parked', atOf(parked)]
  if (isObject(claim)) return ['claimed', timeOf(claim.at)]
  if (retry_at && !(timeout_at && timeout_at < retry_at)) return ['retry', timeOf(retry_at)]
  if (timeout_at) return ['timeout', timeOf(timeout_at)]
  return ['ready', null]
}

const atOf = (record: unknown): string | null => (isObject(record) ? timeOf(record.at) : null)

/** Null for what is no time: it sorts first, so that the document is looked at soon and not never. */
const timeOf = (field: unknown): string | null => (typeof field === 'string' && ISO.test(field) ? field : null)

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
