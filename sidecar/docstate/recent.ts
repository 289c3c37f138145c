import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/revs.ts'

const MOST = 10_000

/** The last revisions that we saved and that ask for nothing: when one comes by without its document, it need not be read. */
export class Recent {
  readonly #revs = new Map<string, string>()

  add({ _id, _rev }: StoredDoc): void {
    this.#revs.delete(_id)
    this.#revs.set(_id, _rev)
    if (this.#revs.size > MOST) this.#revs.delete(this.#revs.keys().next().value!)
  }

  /** Whether this revision, or a later one, is known. The last one is forgotten then: nothing older comes after it. */
  covers(id: string, rev: string): boolean {
    const known = this.#revs.get(id)
    if (known === undefined) return false
    const order = compareRevs(rev, known)
    if (order >= 0) this.#revs.delete(id)
    return order <= 0
  }
}
