/**
 * How far a feed is behind its database, by what the server says of it, since sequences tell nothing: when a connection
 * ends, after a thousand rows at most, how many changes are left; and by a quiet moment that there are no more.
 */
export class FeedLag {
  readonly #ticks: () => number
  /** Changes that were left when the server last said it, without those that have come since. */
  #left = 0
  /** Since when it is not known to be at the end. */
  #since: number | undefined

  constructor(ticks: () => number) {
    this.#ticks = ticks
    this.#since = ticks()
  }

  /** 0 also while the server has not said it. */
  get changes(): number {
    return this.#left
  }

  /** For how long it is not known to be at the end, milliseconds; 0 at the end. */
  get ms(): number {
    return this.#since === undefined ? 0 : this.#ticks() - this.#since
  }

  /** The server says how many are left. */
  left(changes: number): void {
    if (changes === 0) return this.caughtUp()
    this.#left = changes
    this.#since ??= this.#ticks()
  }

  /** Once all have come that were left, it was at the end; of what was written meanwhile the server says more. */
  read(rows: number): void {
    if (this.#left > 0) this.left(Math.max(0, this.#left - rows))
  }

  caughtUp(): void {
    this.#left = 0
    this.#since = undefined
  }

  /** The feed is broken, or begins anew: what there is, is unknown. */
  lost(): void {
    this.#left = 0
    this.#since ??= this.#ticks()
  }
}
