import { onAbort } from './on-abort.ts'

/** A number of permits, given in the order of the requests. The limit may change between two calls. */
export class Semaphore {
  readonly #limit: () => number
  readonly #first: (() => void)[] = []
  readonly #others: (() => void)[] = []
  #taken = 0
  #isGiving = false

  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** How many wait for a permit. */
  get waiting(): number {
    return this.#first.length + this.#others.length
  }

  get taken(): number {
    return this.#taken
  }

  /**
   * Calls `work` with a permit of its own, at once or when one is free. Each needs one `leave`.
   *
   * @param first before all that wait without it
   */
  take(work: () => void, first = false): void {
    const isNext = this.#first.length === 0 && (first || this.#others.length === 0)
    if (isNext && this.#taken < this.#limit()) {
      this.#taken += 1
      work()
    } else (first ? this.#first : this.#others).push(work)
  }

  /** Resolves with a permit. Each needs one `leave`. Rejects with the signal's reason; then it has none. */
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

  /** Runs the work with a permit of its own, when one is free. */
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

  /** The limit may be higher than it was. */
  changed(): void {
    if (this.#isGiving) return // by what was just called, of thousands perhaps: the loop below goes on
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

/** One permit, which may be left early or late, and entered again: it is left as often as it was entered. */
export class Permit {
  readonly #semaphore: Semaphore
  #held = false

  constructor(semaphore: Semaphore) {
    this.#semaphore = semaphore
  }

  /** As `Semaphore.take`, without a promise for those who wait. */
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
