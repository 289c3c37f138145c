import type { Clock } from '../core/clock.ts'
import type { Couch, CouchRequest } from '../couch/client.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { anything, type Schema } from '../couch/schemas.ts'

/** Limits the load on the server: slow answers halve the channels, and a full disk stops all builds. */
export class Pace {
  /** Why the disk counts as full, until the next check; undefined if it does not. */
  lowDisk: string | undefined
  /** Number of requests sent. */
  requests = 0
  readonly #clock: Clock
  #part = 1
  #changedAt = -Infinity
  #fullUntil = -Infinity
  #full: string | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many of these channels may be used now. */
  of(channels: number): number {
    return channels === 0 || this.paused !== undefined ? 0 : Math.max(1, Math.floor(channels * this.#part))
  }

  /** Why no build may begin now; undefined if builds may. */
  get paused(): string | undefined {
    return this.lowDisk ?? (this.#clock.ticks() < this.#fullUntil ? this.#full : undefined)
  }

  /** End of the pause, in ticks; undefined if it does not end by itself. */
  get pausedUntil(): number | undefined {
    return this.lowDisk === undefined && this.paused !== undefined ? this.#fullUntil : undefined
  }

  get part(): number {
    return this.#part
  }

  /** Begins a pause: the server reported a full disk. */
  #pause(reason: string): void {
    this.#full = reason
    this.#fullUntil = this.#clock.ticks() + PAUSE_MS
  }

  /** A client that measures response times: only for requests that the server should answer at once. */
  watch(couch: Couch): Couch {
    const request = (request: CouchRequest, schema: Schema<unknown> = anything) =>
      this.#watched(() => couch.request(request, schema))
    return { ...couch, request }
  }

  /** A client that counts requests, but does not measure response times. */
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
/** Minimum time since the last change: requests that began before it reflect the old state. */
const [SLOWER_MS, FASTER_MS] = [1000, 5000]
const LEAST = 1 / 64
const PAUSE_MS = 60_000
