import type { StoredDoc } from '../couch/documents.ts'

const MOST = 10_000

/** The last revisions that we saved and that ask for nothing: when one comes by without its document, it need not be read. */
export class Recent {
  readonly #revs = new Map<string, string>()

  add({ _id, _rev }: StoredDoc): void {
    this.#revs.delete(_id)
    this.#revs.set(_id, _rev)
    if (this.#revs.size > MOST) this.#revs.delete(this.#revs.keys().next().value!)
  }

  /** Whether this is the revision; then it is forgotten: it comes by once. */
  take(id: string, rev: string): boolean {
    return this.#revs.get(id) === rev && this.#revs.delete(id)
  }
}
