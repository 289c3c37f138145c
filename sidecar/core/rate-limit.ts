import type { Clock } from './clock.ts'

/** So many in so much time. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/** Answers up to so many times, milliseconds since the epoch, at each of which one may begin; none before there are any. */
export type Reserve = (most: number, signal: AbortSignal) => Promise<readonly number[]>

/** Those who wait begin at the times that are reserved for them, in the order of their coming. */
export class RateLimit {
  readonly #reserve: Reserve
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #waiting = new Set<() => void>()
  #isRunning = false

  /** @param signal with which all waiting ends */
  constructor(reserve: Reserve, clock: Clock, signal: AbortSignal) {
    this.#reserve = reserve
    this.#clock = clock
    this.#signal = signal
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0
  }

  /** Resolves when one may begin; rejects with the signal's reason. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting.delete(begin)
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(begin)
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (this.#waiting.size > 0) {
        for (const at of await this.#reserve(this.#waiting.size, this.#signal)) {
          const ms = at - this.#clock.now()
          if (ms > 0) await this.#clock.sleep(ms, this.#signal)
          const [begin] = this.#waiting
          if (begin) this.#waiting.delete(begin)
          begin?.()
        }
      }
    } catch (thrown) {
      if (!this.#signal.aborted) throw thrown
    } finally {
      this.#isRunning = false
    }
  }
}
