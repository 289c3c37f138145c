import type { StoredDoc } from '../../couch/documents.ts'

const FIRST_MS = 30_000
const LONGEST_MS = 3_600_000
const MOST = 10_000

interface Entry {
  readonly mark: string
  readonly tries: number
  readonly until: number
}

/**
 * Conflicts that cannot be resolved until a person does something: each is told once, and tried again later and later,
 * or when the document has changed. Of too many the first are forgotten, and told again.
 */
export class Stuck {
  readonly #entries = new Map<string, Entry>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How many there are. */
  get size(): number {
    return this.#entries.size
  }

  /** How long it is to be left alone as it is now, in milliseconds. */
  remaining(doc: StoredDoc): number {
    const entry = this.#entries.get(doc._id)
    return entry?.mark === markOf(doc) ? Math.max(0, entry.until - this.#ticks()) : 0
  }

  /** True if it is news. */
  add(doc: StoredDoc): boolean {
    const known = this.#entries.get(doc._id)
    const tries = (known?.tries ?? 0) + 1
    const until = this.#ticks() + Math.min(LONGEST_MS, FIRST_MS * 2 ** (tries - 1))
    this.#entries.delete(doc._id)
    this.#entries.set(doc._id, { mark: markOf(doc), tries, until })
    if (this.#entries.size > MOST) this.#entries.delete(this.#entries.keys().next().value!)
    return !known
  }

  forget(id: string): void {
    this.#entries.delete(id)
  }
}

const markOf = ({ _rev, _conflicts = [] }: StoredDoc): string => [_rev, ...[..._conflicts].sort()].join()
