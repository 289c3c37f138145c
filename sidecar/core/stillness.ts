/**
 * Tells which holders of a claim or a lock are gone: those whose document has not changed for a whole lease, by our own
 * clock. Times that another machine wrote are never compared with ours.
 */
export class Stillness {
  readonly #seen = new Map<string, { mark: string; since: number }>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How many documents are watched. */
  get size(): number {
    return this.#seen.size
  }

  /** 0 if `name` has had the same `mark`, as a revision, for `ms`; otherwise how many milliseconds are left. */
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
