import { onAbort } from './on-abort.ts'

/** A number of permits, granted in the order of the calls. The limit may change between two calls. */
export class Semaphore {
  readonly #limit: () => number
  readonly #first: (() => void)[] = []
  readonly #others: (() => void)[] = []
  #taken = 0
  #isGiving = false

  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Number of callers that wait for a permit. */
  get waiting(): number {
    return this.#first.length + this.#others.length
  }

  get taken(): number {
    return this.#taken
  }

  /**
   * Calls `work` with its own permit, at once or when one is free. Each permit needs one `leave`.
   *
   * @param first goes before all callers without it
   */
  take(work: () => void, first = false): void {
    const isNext = this.#first.length === 0 && (first || this.#others.length === 0)
    if (isNext && this.#taken < this.#limit()) {
      this.#taken += 1
      work()
    } else (first ? this.#first : this.#others).push(work)
  }

  /** Resolves with a permit, which needs one `leave`. Rejects with the signal's reason, without a permit. */
  async enter(first = false, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        stopListening()
        resolve()
      }
      const stopListening = onAbort(signal, () => {
        for (const all of [this.#first, this.#others]) if (all.includes(begin)) all.splice(all.indexOf(begin), 1)
        reject(signal!.reason as Error)
      })
      this.take(begin, first)
    })
  }

  /** Runs the work with its own permit, when one is free. */
  async run<T>(work: () => Promise<T>, first = false, signal?: AbortSignal): Promise<T> {
    await this.enter(first, signal)
    try {
      return await work()
    } finally {
      this.leave()
    }
  }

  leave(): void {
    this.#taken -= 1
    this.changed()
  }

  /** Grants free permits after the limit may have risen. */
  changed(): void {
    if (this.#isGiving) return // a call from `work` below: the running loop continues, without deep recursion
    this.#isGiving = true
    const limit = this.#limit()
    while (this.#taken < limit) {
      const work = this.#first.shift() ?? this.#others.shift()
      if (!work) break
      this.#taken += 1
      work()
    }
    this.#isGiving = false
  }
}

/** One permit that may be left early or late, and entered again. A second `leave` has no effect. */
export class Permit {
  readonly #semaphore: Semaphore
  #held = false

  constructor(semaphore: Semaphore) {
    this.#semaphore = semaphore
  }

  /** Like `Semaphore.take`, without a promise for each waiting caller. */
  take(work: () => void): void {
    this.#semaphore.take(() => {
      this.#held = true
      work()
    })
  }

  async enter(): Promise<void> {
    if (!this.#held) await new Promise<void>((resolve) => this.take(resolve))
  }

  leave(): void {
    if (!this.#held) return
    this.#held = false
    this.#semaphore.leave()
  }
}
