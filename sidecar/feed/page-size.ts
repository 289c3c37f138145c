/** Pages are of about so much, once it is known how large the rows are. */
const PAGE_BYTES = 1024 * 1024
/** Before it is known: a few of the largest documents that CouchDB takes are no more than it can be. */
const FIRST_ROWS = 5

/** How many rows the next page of changes is to have. */
export class PageSize {
  readonly #most: number
  #rows = FIRST_ROWS

  constructor(most: number) {
    this.#most = most
  }

  get rows(): number {
    return this.#rows
  }

  /** So many rows have come, and their texts were so long. */
  took(rows: number, bytes: number): void {
    if (rows > 0) this.#rows = Math.max(1, Math.min(this.#most, Math.floor((PAGE_BYTES * rows) / (bytes + 1))))
  }

  /** The page was too much at once. */
  tooLarge(): void {
    this.#rows = Math.ceil(this.#rows / 4)
  }
}
