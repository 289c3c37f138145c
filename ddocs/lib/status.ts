import { isObject, type Doc } from './document.ts'

/**
 * How a document stands in its state.
 *
 * status     at
 * ready      null                      no worker has begun with it
 * retry      `docstate.retry_at`       a try failed; the next one not before
 * timeout    `docstate.timeout_at`     the state ends then, and no worker has begun with it
 * claimed    `docstate.claim.at`       a worker has it since
 * parked     `docstate.parked.at`      a person has to decide, since
 * handled    `docstate.timeout_at`     done with, although it stays in the state, until then; null if that has no end
 * failed     `docstate.timeout_at`     in `error` until then; since `error.at`, which is given where that has no end
 * discarded  `docstate.timeout_at`     the same, by a person; since `docstate.discarded.at`
 */
export const STATUSES = [
  ...(['ready', 'retry', 'timeout', 'claimed'] as const),
  ...(['parked', 'handled', 'failed', 'discarded'] as const),
]

export type Status = (typeof STATUSES)[number]

/**
 * `docstate` is the engine's field (sidecar/docstate/types.ts). It counts only in the state it names. What a client has
 * written there may be anything, and this does not throw: a document without its row in the view would never be found.
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

/** Null for what is no time: it sorts first, so that the document is looked at soon and not never. */
export const timeOf = (field: unknown): string | null => (typeof field === 'string' && ISO.test(field) ? field : null)

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
