import { isObject, type Doc } from './document.ts'

/**
 * Status of a document in its state, and the time `at` that belongs to it.
 *
 * status     at
 * ready      null                      no worker has started
 * retry      `docstate.retry_at`       an attempt failed; the next one does not start earlier
 * timeout    `docstate.timeout_at`     the state ends then; no worker has started
 * claimed    `docstate.claim.at`       a worker has claimed the document since then
 * parked     `docstate.parked.at`      the document has waited for an operator's decision since then
 * handled    `docstate.timeout_at`     done, but stays in the state until then; null without an end
 * failed     `docstate.timeout_at`     in `error` until then; without an end, `error.at`: in `error` since then
 * discarded  `docstate.timeout_at`     in `error`, discarded by an operator; without an end, `docstate.discarded.at`
 */
export const STATUSES = [
  ...(['ready', 'retry', 'timeout', 'claimed'] as const),
  ...(['parked', 'handled', 'failed', 'discarded'] as const),
]

export type Status = (typeof STATUSES)[number]

/**
 * Status and time of a document. The sidecar's field `docstate` (sidecar/docstate/types.ts) counts only in the state
 * that it names. A client may have written any value. This function does not throw: without its row in the view, the
 * document would never be found.
 */
export function statusOf({ state, docstate, error }: Doc): readonly [Status, string | null] {
  const fields = isObject(docstate) && docstate.state === state ? docstate : {}
  const { handled, parked, claim, retry_at, timeout_at, failed_in, discarded } = fields
  if (failed_in) return [discarded ? 'discarded' : 'failed', timeOf(timeout_at) || atOf(discarded || error)]
  if (handled) return ['handled', timeOf(timeout_at)]
  if (parked) return ['parked', atOf(parked)]
  if (isObject(claim)) return ['claimed', timeOf(claim.at)]
  if (retry_at && !(timeout_at && timeout_at < retry_at)) return ['retry', timeOf(retry_at)]
  if (timeout_at) return ['timeout', timeOf(timeout_at)]
  return ['ready', null]
}

const atOf = (record: unknown): string | null => (isObject(record) ? timeOf(record.at) : null)

/** The time, or null if the field is none: null sorts first, so the document is checked soon, not never. */
export const timeOf = (field: unknown): string | null => (typeof field === 'string' && ISO.test(field) ? field : null)

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
