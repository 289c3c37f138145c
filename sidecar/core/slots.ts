/** A number of places, taken in the order asked for. The limit may change between two calls. */
export class Slots {
  readonly #limit: () => number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Calls `work` in a place of its own, at once or when there is one. Each needs one `leave`. */
  take(work: () => void): void {
    if (this.#waiting.length === 0 && this.#taken < this.#limit()) {
      this.#taken += 1
      work()
    } else this.#waiting.push(work)
  }

  /** Resolves when there is a place. Each needs one `leave`. */
  enter(): Promise<void> {
    return new Promise((resolve) => this.take(resolve))
  }

  /** Does the work in a place of its own, when there is one. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    await this.enter()
    try {
      return await work()
    } finally {
      this.leave()
    }
  }

  leave(): void {
    this.#taken -= 1
    const limit = this.#limit()
    while (this.#waiting.length > 0 && this.#taken < limit) {
      this.#taken += 1
      this.#waiting.shift()!()
    }
  }
}
