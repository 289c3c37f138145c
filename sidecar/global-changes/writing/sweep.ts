import type { Couch } from '../../couch/client.ts'
import type { Coverage } from './coverage.ts'
import { eventId } from '../documents.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { eventsBetween, type Reading } from './lookout.ts'
import { listDatabases, readDatabases } from './survey.ts'

export interface SweepOptions {
  readonly couch: Couch
  readonly ledger: Ledger
  readonly coverage: Coverage
  /** Whether this database has events at all. */
  readonly hasEvents: (database: string) => boolean
  /** Has these events written. */
  readonly write: (ids: readonly string[]) => void
}

/**
 * Looks at all databases of these buckets, and has an event written for everything that none was written for. Answers
 * the names of databases about which there was something to tell. Throws `CouchError`.
 */
export type Sweep = (buckets: ReadonlySet<number>, signal: AbortSignal) => Promise<string[]>

export const createSweep =
  ({ couch, ledger, coverage, hasEvents, write }: SweepOptions): Sweep =>
  async (buckets, signal) => {
    const found: string[] = []
    const isIts = (name: string) => buckets.has(bucketOf(name)) && hasEvents(name)

    function compare(name: string, now: Reading | undefined): void {
      const events = eventsBetween(ledger.get(name), now)
      if (events.length === 0) return
      found.push(name)
      coverage.add(name, now)
      write(events.map((event) => eventId(event, name)))
    }

    const listed = (await listDatabases(couch, signal)).filter(isIts)
    for await (const readings of readDatabases(couch, listed, signal)) {
      for (const [name, reading] of readings) compare(name, reading)
    }
    const there = new Set(listed)
    for (const name of ledger.names()) if (isIts(name) && !there.has(name)) compare(name, undefined)
    return found
  }
