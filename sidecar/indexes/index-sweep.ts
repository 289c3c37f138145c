import { filesAfter, isBehind } from '../couch/shard-seqs.ts'
import type { Survey } from '../couch/survey.ts'
import type { Book } from './book.ts'

export interface SweepOptions {
  readonly survey: Survey
  readonly book: Book
  /** Whether this worker builds the indexes of the database. */
  readonly isBuiltHere: (database: string) => boolean
  readonly add: (database: string) => void
  readonly remove: (database: string) => void
}

/**
 * Reads the positions of all databases. It adds new and changed databases, and removes those that are deleted or belong
 * to another worker. If an older copy was restored, it drops the known state of the indexes. Returns the number of
 * added databases. Throws `CouchError`.
 */
export function createSweep({ survey, book, isBuiltHere, add, remove }: SweepOptions) {
  return async (signal: AbortSignal): Promise<number> => {
    const databases = await survey.list(isBuiltHere, signal)
    const existing = new Set(databases)
    for (const database of [...book.databases()]) if (!existing.has(database)) remove(database)
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
