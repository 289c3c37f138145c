import type { Clock } from '../core/clock.ts'
import type { Couch, CouchRequest } from '../couch/client.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { anything, type Schema } from '../couch/schemas.ts'

/** What the server is spared: half of the channels each time that it is slow, all of them while its disk is full. */
export class Pace {
  /** What is wrong with the disk, until the disk is looked at again. */
  lowDisk: string | undefined
  /** Requests made. */
  requests = 0
  readonly #clock: Clock
  #part = 1
  #changedAt = -Infinity
  #fullUntil = -Infinity
  #full: string | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Of so many channels, those that may be used. */
  of(channels: number): number {
    return channels === 0 || this.paused !== undefined ? 0 : Math.max(1, Math.floor(channels * this.#part))
  }

  /** Why nothing is begun now. */
  get paused(): string | undefined {
    return this.lowDisk ?? (this.#clock.ticks() < this.#fullUntil ? this.#full : undefined)
  }

  /** When that is over by itself, by the clock's ticks. */
  get pausedUntil(): number | undefined {
    return this.lowDisk === undefined && this.paused !== undefined ? this.#fullUntil : undefined
  }

  get part(): number {
    return this.#part
  }

  /** The server has said so. */
  #pause(reason: string): void {
    this.#full = reason
    this.#fullUntil = this.#clock.ticks() + PAUSE_MS
  }

  /** The same server, watched: only by requests that it should answer at once. */
  watch(couch: Couch): Couch {
    const request = (request: CouchRequest, schema: Schema<unknown> = anything) =>
      this.#watched(() => couch.request(request, schema))
    return { ...couch, request }
  }

  /** Counted, but free to take its time. */
  count(couch: Couch): Couch {
    const request = (request: CouchRequest, schema: Schema<unknown> = anything) => {
      this.requests += 1
      return this.#minded(couch.request(request, schema))
    }
    return { ...couch, request }
  }

  async #minded<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (thrown) {
      if (thrown instanceof CouchError && thrown.error === 'insufficient_storage') this.#pause(thrown.reason)
      throw thrown
    }
  }

  async #watched<T>(request: () => Promise<T>): Promise<T> {
    const began = this.#clock.ticks()
    try {
      const answer = await request()
      this.#felt(this.#clock.ticks() - began > SLOW_MS)
      return answer
    } catch (thrown) {
      if (BUSY.some((code) => isCouchError(thrown, code))) this.#felt(true)
      throw thrown
    }
  }

  #felt(isSlow: boolean): void {
    const now = this.#clock.ticks()
    if (now - this.#changedAt < (isSlow ? SLOWER_MS : FASTER_MS)) return
    const part = isSlow ? Math.max(LEAST, this.#part / 2) : Math.min(1, this.#part * 2)
    if (part !== this.#part) this.#changedAt = now
    this.#part = part
  }
}

const BUSY = ['overloaded', 'timeout', 'unreachable'] as const
const SLOW_MS = 2000
/** How often it may change: those that were under way tell of what was, not of what is. */
const [SLOWER_MS, FASTER_MS] = [1000, 5000]
const LEAST = 1 / 64
const PAUSE_MS = 60_000
