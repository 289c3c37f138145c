/** A connection that reaches its row limit in less than this time is a flood. */
const FLOOD_MS = 2000
/** Maximum rows of a page that ends a flood: per millisecond since the last page, or in all. The higher one counts. */
const [CALM_PER_MS, CALM] = [1 / 2, 50]
/** Pause between pages in a flood: this multiple of the time that the page took, up to a maximum. */
const [REST, MOST_REST_MS] = [8, 500]

/**
 * Decides whether changes are read in pages or over an open connection. A backlog comes in pages, which cost the server
 * half of what single rows cost. A flood also comes in pages, with a pause after each page. During the pause, the
 * changes of one document become one row.
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

  /** Records a page that reached the end, at `now` (ticks). Returns the pause before the next page, milliseconds. */
  pageEnded(rows: number, tookMs: number, now: number): number {
    const calm = Math.max(CALM, (now - (this.#endedAt ?? -Infinity)) * CALM_PER_MS)
    this.#endedAt = now
    this.#inPages = rows > calm
    return this.#inPages ? Math.min(MOST_REST_MS, tookMs * REST) : 0
  }

  connectionEnded(rows: number, tookMs: number): void {
    this.#inPages = this.#hasPages && rows >= this.#rowsAConnection && tookMs < FLOOD_MS
  }

  /** Switches to a connection: a page may be too large or too slow for a proxy. */
  failed(): void {
    this.#inPages = false
  }
}
