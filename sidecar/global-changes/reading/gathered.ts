import { compareRevs } from '../../couch/documents.ts'
import type { Update } from './update.ts'

/** What the hub has brought for a reader who has not taken it yet: of two rows about a document, the later. */
export class Gathered {
  readonly #rows = new Map<string, Update>()
  /** Revisions that the reader has from pages, and that the hub may still bring. */
  readonly #seen = new Map<string, string>()

  get size(): number {
    return this.#rows.size
  }

  add(update: Update): void {
    const seen = this.#seen.get(update.id)
    if (seen !== undefined && compareRevs(seen, update.rev) >= 0) return
    this.#rows.delete(update.id) // or it would keep the position of the earlier one
    this.#rows.set(update.id, update)
  }

  /** The reader has these from a page. */
  skip(updates: readonly Update[]): void {
    for (const { id, rev } of updates) {
      const row = this.#rows.get(id)
      if (row && compareRevs(rev, row.rev) >= 0) this.#rows.delete(id)
      this.#seen.set(id, rev)
    }
  }

  /** The hub has brought by now what it had to bring of the pages. */
  forgetPages(): void {
    this.#seen.clear()
  }

  take(most: number): readonly Update[] {
    const updates = [...this.#rows.values()].slice(0, most)
    for (const { id } of updates) this.#rows.delete(id)
    return updates
  }
}
