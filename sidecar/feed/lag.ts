/**
 * Lag of a feed behind its database. Sequences do not show the lag, but the server does. When a connection ends, after
 * a thousand rows at most, the server reports how many changes are left. A quiet moment means that none are left.
 */
export class FeedLag {
  readonly #ticks: () => number
  /** Changes left at the server's last report, without those that have come since. */
  #left = 0
  /** Start of the time, in ticks, in which the feed is not known to be at the end. */
  #since: number | undefined

  constructor(ticks: () => number) {
    this.#ticks = ticks
    this.#since = ticks()
  }

  /** Also 0 until the server reports the number. */
  get changes(): number {
    return this.#left
  }

  /** How long the feed is not known to be at the end, milliseconds; 0 at the end. */
  get ms(): number {
    return this.#since === undefined ? 0 : this.#ticks() - this.#since
  }

  /** The server reports how many changes are left. */
  left(changes: number): void {
    if (changes === 0) return this.caughtUp()
    this.#left = changes
    this.#since ??= this.#ticks()
  }

  /** When all reported changes have come, the feed was at the end. The server reports newer changes later. */
  read(rows: number): void {
    if (this.#left > 0) this.left(Math.max(0, this.#left - rows))
  }

  caughtUp(): void {
    this.#left = 0
    this.#since = undefined
  }

  /** The feed is broken or restarts: the number of changes left is unknown. */
  lost(): void {
    this.#left = 0
    this.#since ??= this.#ticks()
  }
}
