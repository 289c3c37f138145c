import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/documents.ts'

const MOST = 10_000
/** Who gives documents longer names has them looked at once more. */
const LONGEST_ID = 200

/**
 * The last revisions that we saved, by which a row of the feed is known that is older than what has become of its
 * document: the list may have brought it earlier.
 */
export class OwnRevisions {
  readonly #saved = new Map<string, { readonly rev: string; readonly asks: boolean }>()

  /** `asks`: for another handler, or another try. */
  add({ _id: id, _rev: rev }: StoredDoc, asks: boolean): void {
    this.#saved.delete(id)
    if (id.length <= LONGEST_ID) this.#saved.set(id, { rev, asks })
    if (this.#saved.size > MOST) this.#saved.delete(this.#saved.keys().next().value!)
  }

  /** The database was made again: its revisions are others. */
  clear(): void {
    this.#saved.clear()
  }

  /**
   * Whether this revision asks for nothing any more. When it, or a later one, has come by, it is forgotten: nothing older
   * comes after it.
   */
  covers(id: string, rev: string): boolean {
    const known = this.#saved.get(id)
    if (known === undefined) return false
    const order = compareRevs(rev, known.rev)
    if (order >= 0) this.#saved.delete(id)
    return order < 0 || (order === 0 && !known.asks)
  }
}
