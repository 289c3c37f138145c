import type { HandlerSetting } from '../../ddocs/lib/live-settings.ts'
import type { Clock } from '../core/clock.ts'
import { parseDuration } from '../core/duration.ts'
import { RateLimit, type Rate, type Reserve } from '../core/rate-limit.ts'
import { untilAny } from '../core/until-any.ts'
import type { SharedTurns } from './turns.ts'
import type { Registration } from './types.ts'

export interface HandlerLimitOptions {
  readonly registration: Registration
  readonly turns: SharedTurns
  /** Reserves starts at this rate, for all workers together. */
  readonly reserveAt: (rate: Rate) => Reserve
  readonly clock: Clock
  /** Ends all waiting. */
  readonly signal: AbortSignal
}

/** Limits of one handler over all databases of this process: from its options, or from live settings. */
export class HandlerLimit {
  readonly turns: SharedTurns
  readonly #options: HandlerLimitOptions
  #setting: HandlerSetting = {}
  #rate: RateLimit | undefined
  /** Aborted to end the wait for a start when the limit changes or a pause begins. */
  #changed = new AbortController()

  constructor(options: HandlerLimitOptions) {
    this.#options = options
    this.turns = options.turns
    this.#rate = this.#createRate()
  }

  get isPaused(): boolean {
    return this.#setting.paused ?? false
  }

  /** Whether documents wait for nothing but their turn. */
  get isFree(): boolean {
    return !this.isPaused && this.#rate === undefined
  }

  /** Whether documents wait for a start within the limit, or for the end of a pause. */
  get isHeldBack(): boolean {
    return this.isPaused || (this.#rate?.isWaitedFor ?? false)
  }

  /** Overrides the handler's options from now on. */
  set(setting: HandlerSetting): void {
    const isOther = JSON.stringify(setting.limit) !== JSON.stringify(this.#setting.limit)
    const stops = setting.paused && !this.#setting.paused
    this.#setting = setting
    if (isOther) this.#rate = this.#createRate()
    if (isOther || stops) this.#wake()
    this.turns.changed()
  }

  /** Waits for a start within the limit. True if the handler may begin; false if it is paused, or the signal aborts. */
  async mayStart(signal: AbortSignal): Promise<boolean> {
    if (!this.isPaused && !signal.aborted && this.#rate?.tryEnter()) return true
    for (let rate = this.#rate; rate && !this.isPaused && !signal.aborted; rate = this.#rate) {
      const entered = await untilAny([signal, this.#changed.signal], (until) => rate.enter(until)).then(
        () => true,
        () => false,
      )
      if (entered) break
    }
    return !this.isPaused && !signal.aborted
  }

  #createRate(): RateLimit | undefined {
    const { registration, reserveAt, clock, signal } = this.#options
    const { limit } = this.#setting
    const rate = limit ? { count: limit.count, perMs: parseDuration(limit.per)! } : registration.options.limit
    return rate && new RateLimit(reserveAt(rate), clock, signal)
  }

  #wake(): void {
    this.#changed.abort(new Error('the limit is another one'))
    this.#changed = new AbortController()
  }
}
