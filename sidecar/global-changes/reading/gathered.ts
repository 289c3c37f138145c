import { compareRevs } from '../../couch/documents.ts'
import type { Update } from './update.ts'

/** Revisions that a reader has from pages, and that the hub may still deliver, by the id of their document. */
export type Seen = Map<string, string>

/** Maximum number of revisions in `Seen`: the latest. */
const MOST_SEEN = 1000

/** Rows from the hub that a reader has not taken yet. A later row about a document replaces the earlier one. */
export class Gathered {
  readonly #rows = new Map<string, Update>()
  readonly #seen: Seen

  constructor(seen: Seen = new Map()) {
    this.#seen = seen
  }

  get size(): number {
    return this.#rows.size
  }

  add(update: Update): void {
    const seen = this.#seen.get(update.id)
    if (seen !== undefined && compareRevs(seen, update.rev) >= 0) return
    this.#rows.delete(update.id) // otherwise it keeps the position of the earlier row
    this.#rows.set(update.id, update)
  }

  /** Skips these rows: the reader has them from a page. */
  skip(updates: readonly Update[]): void {
    for (const { id, rev } of updates) {
      const row = this.#rows.get(id)
      if (row && compareRevs(rev, row.rev) >= 0) this.#rows.delete(id)
      this.#seen.delete(id) // otherwise it keeps the position of the earlier revision
      this.#seen.set(id, rev)
    }
    for (const id of this.#seen.keys()) {
      if (this.#seen.size <= MOST_SEEN) break
      this.#seen.delete(id)
    }
  }

  take(most: number): readonly Update[] {
    const updates = [...this.#rows.values()].slice(0, most)
    for (const { id } of updates) this.#rows.delete(id)
    return updates
  }
}
