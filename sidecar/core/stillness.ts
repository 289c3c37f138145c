/**
 * Finds holders of a claim or a lock that are dead: their document has not changed for a whole lease, by our own clock.
 * Times of another machine are never compared with ours.
 */
export class Stillness {
  readonly #seen = new Map<string, { mark: string; since: number }>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** Number of watched documents. */
  get size(): number {
    return this.#seen.size
  }

  /** Returns 0 if `name` has kept the same `mark` (a revision, say) for `ms`; otherwise the milliseconds left. */
  remaining(name: string, mark: string, ms: number): number {
    const seen = this.#seen.get(name)
    if (seen?.mark !== mark) {
      this.#seen.set(name, { mark, since: this.#ticks() })
      return ms
    }
    return Math.max(0, Math.ceil(ms - (this.#ticks() - seen.since)))
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }
}
