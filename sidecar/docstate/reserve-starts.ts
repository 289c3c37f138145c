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
  /** Of the handler: `type/state`. */
  readonly name: string
  readonly rate: Rate
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** So far ahead starts are reserved: as many in one write as there are in this time, or one. */
const AHEAD_MS = 1000
/** A time that is further away than any reservation was written by a clock that was wrong. */
const WRONG_MS = 60_000
/** Between a time that is reserved and what the handler does then lies a claim, longer or shorter. */
const SAFETY = 1.01

/** Of the document that holds the next free start of a handler. */
export const limitId = (name: string): string => `limit:${name}`

/**
 * Starts of one handler for all workers together, evenly apart ("generic cell rate algorithm"): a document in the control
 * database says when the next one is free, and who moves it on by a write has the times between. So no time is given twice,
 * and what a dead worker has reserved is lost with it, a second's worth at most.
 */
export function createReserveStarts({ control, name, rate, clock, random, log }: ReserveStartsOptions): Reserve {
  const apartMs = (rate.perMs * SAFETY) / rate.count
  const _id = limitId(name)

  async function reserve(most: number, signal: AbortSignal): Promise<Starts | undefined> {
    const doc = await control.find(_id, {}, { signal })
    const now = clock.now()
    const written = Date.parse(String(doc?.next_at))
    const isWrong = Number.isNaN(written) || written > now + apartMs + AHEAD_MS + WRONG_MS
    const latest = doc?.apart_ms === apartMs ? Infinity : now + apartMs // the limit was another one
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
    log.warn({ handler: name, code, reason: message, retryInMs }, 'the limit of a handler cannot be written: it waits')
  /** No error ends the waiting: without the document nothing may begin. */
  const retryOf = ({ retry }: CouchError) => (retry === 'never' ? 'slowly' : retry)

  return async (most, signal) => {
    for (;;) {
      const ask = () => reserve(most, signal)
      const starts = await withRetries(ask, { clock, random, signal, retryOf, onTrouble })
      if (starts) return starts
    }
  }
}
