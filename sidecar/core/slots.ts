/** A number of places, taken in the order asked for. The limit may change between two calls. */
export class Slots {
  readonly #limit: () => number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Resolves when there is a place. Each needs one `leave`. */
  async enter(): Promise<void> {
    if (this.#waiting.length === 0 && this.#taken < this.#limit()) this.#taken += 1
    else await new Promise<void>((admit) => this.#waiting.push(admit))
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
