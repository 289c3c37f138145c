/** Approximate size of a page, once the size of rows is known. */
const PAGE_BYTES = 1024 * 1024
/** Rows of a page before the row size is known: so few of CouchDB's largest documents fit into one answer. */
const FIRST_ROWS = 5

/** Decides how many rows the next page of changes has. */
export class PageSize {
  readonly #most: number
  #rows = FIRST_ROWS

  constructor(most: number) {
    this.#most = most
  }

  get rows(): number {
    return this.#rows
  }

  /** Adapts to a page of `rows` rows, whose texts are `bytes` long in all. */
  took(rows: number, bytes: number): void {
    if (rows > 0) this.#rows = Math.max(1, Math.min(this.#most, Math.floor((PAGE_BYTES * rows) / (bytes + 1))))
  }

  /** Shrinks the next page: the last one was too large. */
  tooLarge(): void {
    this.#rows = Math.ceil(this.#rows / 4)
  }
}
