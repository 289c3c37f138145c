import type { Reading } from '../couch/survey.ts'
import { Entry } from './entry.ts'
import { keyOf, type Index } from './indexes-of.ts'

/** State of a database whose indexes this worker builds. */
export interface Page {
  /** Position at the last periodic run, if any, with the files of all runs. */
  reading: Reading | undefined
  /** Position at the last check; a number like `changes` in `Reading`. */
  seq: number
  /** Time of the first change since the last check began, milliseconds since the epoch. */
  touchedAt: number | undefined
  /** By `keyOf`. */
  readonly entries: Map<string, Entry>
}

export interface BookCounts {
  readonly databases: number
  readonly fresh: number
  readonly behind: number
  /** Stale indexes whose last build failed. */
  readonly failing: number
  /** How long the oldest stale index is stale, milliseconds. */
  readonly worstLagMs: number
}

/** State of each index, by database. */
export class Book {
  readonly #pages = new Map<string, Page>()

  get(database: string): Page | undefined {
    return this.#pages.get(database)
  }

  open(database: string): Page {
    const known = this.#pages.get(database)
    if (known) return known
    const page: Page = { reading: undefined, seq: -1, touchedAt: undefined, entries: new Map() }
    this.#pages.set(database, page)
    return page
  }

  /** Records a change in a database. */
  touch(database: string, now: number): void {
    const page = this.#pages.get(database)
    if (!page) return
    page.touchedAt ??= now
    for (const entry of page.entries.values()) entry.touch(now)
  }

  /** Sets the indexes of a database. An index keeps its state unless its design document has changed. */
  list(database: string, indexes: readonly Index[], now: number): void {
    const { entries } = this.open(database)
    const before = new Map(entries)
    entries.clear()
    for (const index of indexes) {
      const known = before.get(keyOf(index))
      const entry = known?.index.rev === index.rev ? known : new Entry(index, now)
      entries.set(keyOf(index), entry)
      if (entry === known) before.delete(keyOf(index))
    }
    for (const entry of before.values()) entry.end()
  }

  /** Removes a database and ends its builds. */
  close(database: string): void {
    for (const entry of this.#pages.get(database)?.entries.values() ?? []) entry.end()
    this.#pages.delete(database)
  }

  databases(): Iterable<string> {
    return this.#pages.keys()
  }

  *entries(): Generator<Entry> {
    for (const { entries } of this.#pages.values()) {
      for (const entry of entries.values()) if (!entry.isForeign) yield entry
    }
  }

  /** Forgets builds that succeeded before this time, in ticks. */
  prune(before: number): void {
    for (const entry of this.entries()) {
      if (entry.job && !entry.job.isRunning && entry.job.notBefore === 0 && entry.job.at < before) entry.job = undefined
    }
  }

  counts(now: number): BookCounts {
    const counts = { databases: this.#pages.size, fresh: 0, behind: 0, failing: 0, worstLagMs: 0 }
    for (const entry of this.entries()) {
      if (entry.isFresh) counts.fresh += 1
      else {
        counts.behind += 1
        if (entry.failure) counts.failing += 1
        counts.worstLagMs = Math.max(counts.worstLagMs, entry.behindFor(now))
      }
    }
    return counts
  }
}
