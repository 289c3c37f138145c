import { onAbort } from './on-abort.ts'
import type { Clock } from './clock.ts'

/** A number of starts in a period. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/** Reserved start times: milliseconds since the epoch, at even distances. */
export interface Starts {
  readonly first: number
  readonly apartMs: number
  /** At least one. */
  readonly count: number
}

/** Reserves up to `most` starts for this process. */
export type Reserve = (most: number, signal: AbortSignal) => Promise<Starts>

/** A reservation within this many durations of the last one covers the same time ahead. */
const AHEAD = 10

/** Lets callers start at reserved times, in the order of their calls. */
export class RateLimit {
  readonly #reserve: Reserve
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #waiting = new Set<() => void>()
  #isRunning = false
  #starts: Starts = { first: 0, apartMs: 1, count: 0 }
  /** Number of `#starts` that are used or past. */
  #used = 0
  /** Number of starts reserved for callers that already waited. These starts stay valid after their time. */
  #due = 0
  /** Begin of the last reservation, in ticks, and its duration. */
  #reservation = { at: -Infinity, tookMs: 0 }

  /** @param signal ends all waiting */
  constructor(reserve: Reserve, clock: Clock, signal: AbortSignal) {
    this.#reserve = reserve
    this.#clock = clock
    this.#signal = signal
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0
  }

  /** Takes a start if one is due now. Returns whether it did. */
  tryEnter(): boolean {
    if (this.#waiting.size > 0 || !this.#hasStarts()) return false
    const used = this.#used
    if (this.#nextStart() <= this.#clock.now()) return true
    this.#used = used
    return false
  }

  /** Resolves when the caller may start; rejects with the signal's reason. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        stopListening()
        resolve()
      }
      const stopListening = onAbort(signal, () => {
        this.#waiting.delete(begin)
        reject(signal.reason as Error)
      })
      this.#waiting.add(begin)
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (this.#waiting.size > 0) {
        if (!this.#hasStarts()) await this.#reserveMore()
        const ms = this.#nextStart() - this.#clock.now()
        if (ms > 0) await this.#clock.sleep(ms, this.#signal)
        const [begin] = this.#waiting
        if (begin) this.#waiting.delete(begin)
        begin?.()
      }
    } catch (thrown) {
      if (!this.#signal.aborted) throw thrown
    } finally {
      this.#isRunning = false
    }
  }

  #hasStarts(): boolean {
    const { first, apartMs, count } = this.#starts
    return this.#used < count && (this.#used < this.#due || this.#clock.now() < first + count * apartMs)
  }

  async #reserveMore(): Promise<void> {
    const { at, tookMs } = this.#reservation
    const began = this.#clock.ticks()
    const isBusy = began - at < AHEAD * tookMs
    const ahead = isBusy ? Math.ceil((AHEAD * tookMs) / this.#starts.apartMs) : 0
    this.#due = this.#waiting.size
    this.#starts = await this.#reserve(Math.max(this.#due, ahead), this.#signal)
    this.#used = 0
    this.#reservation = { at: began, tookMs: this.#clock.ticks() - began }
  }

  /**
   * Skips past starts while enough remain for the waiting callers. Starts of the same millisecond begin together: no
   * timer is finer, and a timer for each would take a millisecond each.
   */
  #nextStart(): number {
    const { first, apartMs, count } = this.#starts
    const gone = Math.floor((this.#clock.now() - first) / apartMs)
    const next = Math.max(this.#used, Math.min(gone, count - Math.max(1, this.#waiting.size)))
    this.#used = next + 1
    return Math.floor(first + next * apartMs)
  }
}
