import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Rate, Reserve, Starts } from '../core/rate-limit.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError, type CouchError } from '../couch/couch-errors.ts'
import { withRetries } from '../couch/with-retries.ts'

export interface ReserveStartsOptions {
  /** The control database, which all workers share. */
  readonly control: Database
  /** Name of the handler: `type/state`. */
  readonly name: string
  readonly rate: Rate
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** One write reserves the starts within this time ahead, at least one. */
const AHEAD_MS = 1000
/** A stored time that is this much beyond any reservation was written by a wrong clock. */
const WRONG_MS = 60_000
/** Factor on the interval: a claim of varying length separates a reserved start from the handler's effect. */
const SAFETY = 1.01

/** Id of the document that holds a handler's next free start. */
export const limitId = (name: string): string => `limit:${name}`

/**
 * Reserves evenly spaced starts of one handler for all workers together ("generic cell rate algorithm"). A document in
 * the control database holds the next free start. A worker that advances this time by a write owns the starts between.
 * So no start is given twice. A dead worker loses its reserved starts, at most one second's worth.
 */
export function createReserveStarts({ control, name, rate, clock, random, log }: ReserveStartsOptions): Reserve {
  const apartMs = (rate.perMs * SAFETY) / rate.count
  const _id = limitId(name)

  async function reserve(most: number, signal: AbortSignal): Promise<Starts | undefined> {
    const doc = await control.find(_id, {}, { signal })
    const now = clock.now()
    const written = Date.parse(String(doc?.next_at))
    const isWrong = Number.isNaN(written) || written > now + apartMs + AHEAD_MS + WRONG_MS
    const latest = doc?.apart_ms === apartMs ? Infinity : now + apartMs // the limit has changed
    const first = isWrong ? now : Math.max(now, Math.min(written, latest))
    if (first > now + AHEAD_MS) {
      await clock.sleep(Math.min(first - now - AHEAD_MS / 2, WRONG_MS), signal)
      return undefined
    }
    const count = Math.min(most, Math.max(1, Math.floor(AHEAD_MS / apartMs)))
    const next_at = isoTime(Math.ceil(first + count * apartMs))
    try {
      await control.put({ ...doc, _id, type: 'limit', next_at, apart_ms: apartMs }, { signal })
      return { first, apartMs, count }
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      await clock.sleep(random() * 50, signal)
      return undefined
    }
  }

  const onTrouble = ({ code, message }: CouchError, retryInMs: number) =>
    log.warn(
      { handler: name, code, reason: message, retryInMs },
      'cannot write the rate limit of a handler; its documents wait',
    )
  /** Retries after every error: without the document no handler may begin. */
  const retryOf = ({ retry }: CouchError) => (retry === 'never' ? 'slowly' : retry)

  return async (most, signal) => {
    for (;;) {
      const reserveStarts = () => reserve(most, signal)
      const starts = await withRetries(reserveStarts, { clock, random, signal, retryOf, onTrouble })
      if (starts) return starts
    }
  }
}
