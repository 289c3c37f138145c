import { onAbort } from './on-abort.ts'
import type { Clock } from './clock.ts'

/** So many in so much time. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/** Times at which one may begin: milliseconds since the epoch, evenly apart. */
export interface Starts {
  readonly first: number
  readonly apartMs: number
  /** At least one. */
  readonly count: number
}

/** Reserves up to so many starts, all of them ours. */
export type Reserve = (most: number, signal: AbortSignal) => Promise<Starts>

/** Where starts are asked for again so soon, as many as there are in the time of so many requests are reserved at once. */
const AHEAD = 10

/** Those who wait begin at the times that are reserved for them, in the order of their coming. */
export class RateLimit {
  readonly #reserve: Reserve
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #waiting = new Set<() => void>()
  #isRunning = false
  #starts: Starts = { first: 0, apartMs: 1, count: 0 }
  /** Of them, those that were used or have gone by. */
  #used = 0
  /** Those that were there for who waited when they were reserved: they count also when their time has gone by. */
  #due = 0
  /** When starts were last asked for, in ticks, and how long that took. */
  #asked = { at: -Infinity, tookMs: 0 }

  /** @param signal with which all waiting ends */
  constructor(reserve: Reserve, clock: Clock, signal: AbortSignal) {
    this.#reserve = reserve
    this.#clock = clock
    this.#signal = signal
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0
  }

  /** Whether one may begin at once, and does. */
  tryEnter(): boolean {
    if (this.#waiting.size > 0 || !this.#hasStarts()) return false
    const used = this.#used
    if (this.#nextStart() <= this.#clock.now()) return true
    this.#used = used
    return false
  }

  /** Resolves when one may begin; rejects with the signal's reason. */
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
    const { at, tookMs } = this.#asked
    const began = this.#clock.ticks()
    const isBusy = began - at < AHEAD * tookMs
    const ahead = isBusy ? Math.ceil((AHEAD * tookMs) / this.#starts.apartMs) : 0
    this.#due = this.#waiting.size
    this.#starts = await this.#reserve(Math.max(this.#due, ahead), this.#signal)
    this.#used = 0
    this.#asked = { at: began, tookMs: this.#clock.ticks() - began }
  }

  /**
   * Starts whose time has gone by are left out, as long as there are enough for those who wait. Those of the same millisecond
   * begin together: no timer is finer, and one for each would be a millisecond for each.
   */
  #nextStart(): number {
    const { first, apartMs, count } = this.#starts
    const gone = Math.floor((this.#clock.now() - first) / apartMs)
    const next = Math.max(this.#used, Math.min(gone, count - Math.max(1, this.#waiting.size)))
    this.#used = next + 1
    return Math.floor(first + next * apartMs)
  }
}
