import { filesAfter, isBehind } from '../couch/shard-seqs.ts'
import type { Survey } from '../couch/survey.ts'
import type { Book } from './book.ts'

export interface SweepOptions {
  readonly survey: Survey
  readonly book: Book
  /** Whether the indexes of this database are to be kept here. */
  readonly isBuiltHere: (database: string) => boolean
  readonly add: (database: string) => void
  readonly remove: (database: string) => void
}

/**
 * Looks at all databases: who is further than when it was looked at last, or was not, is added; who is no more, or no
 * longer ours, is removed. Of an older copy that was put back all is forgotten that was known of its indexes. Returns
 * how many were added. Throws `CouchError`.
 */
export function createSweep({ survey, book, isBuiltHere, add, remove }: SweepOptions) {
  return async (signal: AbortSignal): Promise<number> => {
    const databases = await survey.list(isBuiltHere, signal)
    const there = new Set(databases)
    for (const database of [...book.databases()]) if (!there.has(database)) remove(database)
    let added = 0
    for await (const readings of survey.read(databases, signal)) {
      for (const [database, reading] of readings) {
        const known = book.get(database)
        const { life, changes, seq } = reading
        const before = known?.reading ?? reading
        if (known && (before.life !== life || isBehind(reading, before))) remove(database)
        else if (known) {
          known.reading = { life, changes, seq, files: filesAfter(reading, before) }
          if (known.seq === changes) continue
        }
        add(database)
        added += 1
      }
    }
    return added
  }
}
