import type { Clock } from '../core/clock.ts'
import { MAX_DOCS } from './inbox-documents.ts'
import { createRateLimiter, type RateLimiter } from './token-bucket.ts'

export interface InboxRatesOptions {
  /** Documents from one address within a minute. */
  readonly perMinute: number
  /** How many devices may wait to be confirmed. */
  readonly limit: number
  readonly clock: Clock
}

export interface InboxRates {
  /** Documents that are sent. */
  readonly writes: RateLimiter
  /** Questions what became of one. */
  readonly reads: RateLimiter
  /** New devices, where half of the room for them is taken: else one address could take all of it. */
  readonly shares: RateLimiter
}

/** What becomes of a document may be asked so much more often than documents may be sent. */
const FATES = 10
/** Who waits asks every two seconds; there may be another one at the same address. */
const POLLING = 60
/** Of the room, and again in a day: then those that came before are over. */
const SHARE = 1 / 20
const DAY_MINUTES = 24 * 60

export function createInboxRates({ perMinute, limit, clock }: InboxRatesOptions): InboxRates {
  const share = Math.max(limit * SHARE, 1)
  return {
    writes: createRateLimiter({ perMinute, atOnce: MAX_DOCS, clock }),
    reads: createRateLimiter({ perMinute: Math.max(perMinute * FATES, POLLING), clock }),
    shares: createRateLimiter({ perMinute: share / DAY_MINUTES, atOnce: share, clients: limit, clock }),
  }
}
