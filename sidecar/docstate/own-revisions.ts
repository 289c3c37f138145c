import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/documents.ts'

const MOST = 10_000
/** Maximum length of a remembered id, in characters. Documents with longer ids are read once more. */
const LONGEST_ID = 200

/**
 * The last revisions that this worker saved. They identify feed rows older than the saved document: a resync may have
 * found it before the feed.
 */
export class OwnRevisions {
  readonly #saved = new Map<string, { readonly rev: string; readonly needsWork: boolean }>()

  /** @param needsWork whether the document needs another handler or attempt */
  add({ _id: id, _rev: rev }: StoredDoc, needsWork: boolean): void {
    this.#saved.delete(id)
    if (id.length <= LONGEST_ID) this.#saved.set(id, { rev, needsWork })
    if (this.#saved.size > MOST) this.#saved.delete(this.#saved.keys().next().value!)
  }

  /** Call when the database was recreated: its revisions are different. */
  clear(): void {
    this.#saved.clear()
  }

  /**
   * Whether a revision needs no more work. The saved revision is forgotten once it or a later one arrives: no older one
   * follows.
   */
  covers(id: string, rev: string): boolean {
    const known = this.#saved.get(id)
    if (known === undefined) return false
    const order = compareRevs(rev, known.rev)
    if (order >= 0) this.#saved.delete(id)
    return order < 0 || (order === 0 && !known.needsWork)
  }
}
