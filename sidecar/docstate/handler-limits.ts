import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { RateLimit } from '../core/rate-limit.ts'
import type { Logger } from 'pino'
import type { Database } from '../couch/database.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { handlerDefaults } from './handler-options.ts'
import { createReserveStarts } from './reserve-starts.ts'
import { SharedTurns } from './turns.ts'
import type { Registration } from './types.ts'

export interface HandlerLimitsOptions {
  /** The control database, where all workers share what is limited for all together. */
  readonly control: Database
  /** Which of how many workers this one is, among those that may run a handler. */
  readonly shareOf: (pair: TypeAndState, most: number) => Share
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** With which all waiting ends. */
  readonly signal: AbortSignal
}

/** In one process, of handlers that differ in priority. */
const AT_ONCE = handlerDefaults.concurrency

export interface Share {
  readonly index: number
  readonly of: number
}

/** What a handler may do at once, over all databases of this process. */
export interface HandlerLimit {
  readonly turns: SharedTurns
  /** Over all workers together; undefined without `limit`. */
  readonly rate: RateLimit | undefined
}

/** Of an engine that is alone. */
export const ownLimits = (options: Omit<HandlerLimitsOptions, 'shareOf'>): HandlerLimits =>
  new HandlerLimits({ ...options, shareOf: () => ({ index: 0, of: 1 }) })

/** The limits of all handlers: one for the process. */
export class HandlerLimits {
  readonly #options: HandlerLimitsOptions
  readonly #limits = new Map<Registration, HandlerLimit>()

  constructor(options: HandlerLimitsOptions) {
    this.#options = options
  }

  of(registration: Registration): HandlerLimit {
    const known = this.#limits.get(registration)
    if (known) return known
    const made = this.#create(registration)
    this.#limits.set(registration, made)
    return made
  }

  /** Workers have come or gone. */
  changed(): void {
    for (const { turns } of this.#limits.values()) turns.changed()
  }

  #create(registration: Registration): HandlerLimit {
    const { control, clock, random, log, signal } = this.#options
    const { type, state, mode, options } = registration
    const { limit } = options
    const turns = new SharedTurns({
      hasClaims: mode === 'unsafe',
      concurrency: () => Math.max(1, Math.min(this.#concurrencyOf(registration), this.#leftFor(registration))),
      onNoneWaiting: () => this.#giveWay(registration),
    })
    if (!limit) return { turns, rate: undefined }
    const reserve = createReserveStarts({ control, name: `${type}/${state}`, rate: limit, clock, random, log })
    return { turns, rate: new RateLimit(reserve, clock, signal) }
  }

  /** Each worker that may run the handler has its part; who has documents all the same, and no part, runs one at a time. */
  #concurrencyOf({ type, state, options: { concurrency, globalConcurrency } }: Registration): number {
    if (globalConcurrency === undefined) return concurrency
    const { index, of } = this.#options.shareOf({ type, state }, globalConcurrency)
    const part = Math.floor(globalConcurrency / of) + (index < globalConcurrency % of ? 1 : 0)
    return Math.min(concurrency, part)
  }

  /** What handlers leave that come before this one, and whose documents wait for nothing but their turn. */
  #leftFor({ options: { priority } }: Registration): number {
    let taken = 0
    for (const [{ options }, { turns, rate }] of this.#limits) {
      if (options.priority < priority && turns.waiting > 0 && !rate?.isWaitedFor) taken += turns.running.taken
    }
    return taken === 0 ? Infinity : AT_ONCE - taken
  }

  /** To those that come after this one. */
  #giveWay({ options: { priority } }: Registration): void {
    for (const [{ options }, { turns }] of this.#limits) if (options.priority > priority) turns.changed()
  }
}
