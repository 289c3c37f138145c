/** Rows of a connection in this time, or faster, are a flood. */
const FLOOD_MS = 2000
/** A page after a rest shows that the flood is over if it has at most so many rows for each millisecond since the last one, or so few. */
const [CALM_PER_MS, CALM] = [1 / 2, 50]
/** In a flood so many times as long as a page took is rested before the next. */
const [REST, MOST_REST_MS] = [8, 500]

/**
 * Whether changes are read in pages or over a connection that stays open. What has piled up comes in pages, which cost the server
 * half of what rows cost that are sent as they come. So does a flood, with a rest after each page: meanwhile the changes of
 * one document become one row.
 */
export class FeedPace {
  readonly #hasPages: boolean
  readonly #rowsAConnection: number
  #inPages: boolean
  #endedAt: number | undefined

  constructor(hasPages: boolean, rowsAConnection: number) {
    this.#hasPages = hasPages
    this.#inPages = hasPages
    this.#rowsAConnection = rowsAConnection
  }

  get inPages(): boolean {
    return this.#inPages
  }

  /** After a page with which all rows were read, at this time (ticks): how long to rest, milliseconds. */
  pageEnded(rows: number, tookMs: number, now: number): number {
    const calm = Math.max(CALM, (now - (this.#endedAt ?? -Infinity)) * CALM_PER_MS)
    this.#endedAt = now
    this.#inPages = rows > calm
    return this.#inPages ? Math.min(MOST_REST_MS, tookMs * REST) : 0
  }

  connectionEnded(rows: number, tookMs: number): void {
    this.#inPages = this.#hasPages && rows >= this.#rowsAConnection && tookMs < FLOOD_MS
  }

  /** A page may be too large, or too slow, for what is between us and the server. */
  failed(): void {
    this.#inPages = false
  }
}
