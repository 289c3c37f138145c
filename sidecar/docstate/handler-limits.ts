import { onAbort } from '../core/on-abort.ts'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Rate } from '../core/rate-limit.ts'
import type { Logger } from 'pino'
import type { HandlerSetting, HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Database } from '../couch/database.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { HandlerLimit } from './handler-limit.ts'
import { handlerDefaults } from './handler-options.ts'
import { createReserveStarts } from './reserve-starts.ts'
import { SharedTurns } from './turns.ts'
import type { Registration } from './types.ts'

export interface HandlerLimitsOptions {
  /** The control database: all workers share the state of common limits in it. */
  readonly control: Database
  /** Index of this worker among the workers that may run a handler, and their number, at most `most`. */
  readonly shareOf: (pair: TypeAndState, most: number) => Share
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Ends all waiting. */
  readonly signal: AbortSignal
}

/** Concurrent runs of a process that handlers of different priority share. */
const AT_ONCE = handlerDefaults.concurrency

export interface Share {
  readonly index: number
  readonly of: number
}

/** Limits for a single engine, without other workers. */
export const ownLimits = (options: Omit<HandlerLimitsOptions, 'shareOf'>): HandlerLimits =>
  new HandlerLimits({ ...options, shareOf: () => ({ index: 0, of: 1 }) })

/** The limits of all handlers; one instance per process. */
export class HandlerLimits {
  readonly #options: HandlerLimitsOptions
  readonly #limits = new Map<Registration, HandlerLimit>()
  readonly #resumed = new Set<() => void>()
  #settings: HandlerSettings = {}

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

  /** Call when workers have joined or left. */
  changed(): void {
    for (const { turns } of this.#limits.values()) turns.changed()
  }

  /** Overrides the options of handlers from now on. */
  set(settings: HandlerSettings): void {
    const before = this.paused
    this.#settings = settings
    for (const [registration, limit] of this.#limits) limit.set(this.#settingOf(registration))
    const isResumed = [...before].some((name) => !this.paused.has(name))
    if (isResumed) for (const listener of [...this.#resumed]) listener()
  }

  isPaused(pair: TypeAndState): boolean {
    return this.#settingOf(pair).paused ?? false
  }

  /** The paused handlers, as `type/state`. */
  get paused(): ReadonlySet<string> {
    return new Set(Object.keys(this.#settings).filter((name) => this.#settings[name]?.paused))
  }

  /** Calls the listener when a paused handler resumes, until the signal aborts. */
  onResumed(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return
    this.#resumed.add(listener)
    onAbort(signal, () => this.#resumed.delete(listener))
  }

  #settingOf({ type, state, byMachine }: TypeAndState & Pick<Registration, 'byMachine'>): HandlerSetting {
    const name = `${type}/${state}`
    if (byMachine) return {}
    return Object.hasOwn(this.#settings, name) ? this.#settings[name]! : {}
  }

  #create(registration: Registration): HandlerLimit {
    const { control, clock, random, log, signal } = this.#options
    const { type, state, mode } = registration
    const turns = new SharedTurns({
      hasClaims: mode === 'unsafe',
      concurrency: () => Math.max(1, Math.min(this.#concurrencyOf(registration), this.#leftFor(registration))),
      onNoneWaiting: () => this.#giveWay(registration),
    })
    const reserveAt = (rate: Rate) =>
      createReserveStarts({ control, name: `${type}/${state}`, rate, clock, random, log })
    const limit = new HandlerLimit({ registration, turns, reserveAt, clock, signal })
    limit.set(this.#settingOf(registration))
    return limit
  }

  /** This worker's share of the concurrency. It may be 0, but a worker with documents still runs one at a time. */
  #concurrencyOf(registration: Registration): number {
    const { type, state, options } = registration
    const { globalConcurrency } = options
    const concurrency = this.#settingOf(registration).concurrency ?? options.concurrency
    if (globalConcurrency === undefined) return concurrency
    const { index, of } = this.#options.shareOf({ type, state }, globalConcurrency)
    const part = Math.floor(globalConcurrency / of) + (index < globalConcurrency % of ? 1 : 0)
    return Math.min(concurrency, part)
  }

  /** Runs left by handlers of higher priority whose documents wait only for a turn. */
  #leftFor({ options: { priority } }: Registration): number {
    let taken = 0
    for (const [{ options }, { turns, isHeldBack }] of this.#limits) {
      if (options.priority < priority && turns.waiting > 0 && !isHeldBack) taken += turns.running.taken
    }
    return taken === 0 ? Infinity : AT_ONCE - taken
  }

  /** Wakes handlers of lower priority: they may have more runs now. */
  #giveWay({ options: { priority } }: Registration): void {
    for (const [{ options }, { turns }] of this.#limits) if (options.priority > priority) turns.changed()
  }
}
