import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { listDatabases, readDatabases, type Reading } from '../../couch/survey.ts'
import { eventId } from '../documents.ts'
import type { Coverage } from './coverage.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { eventsBetween } from './lookout.ts'

export interface SweepOptions {
  readonly couch: Couch
  readonly ledger: Ledger
  readonly coverage: Coverage
  readonly clock: Clock
  /** How long it may take from a change until its event is written, milliseconds. */
  readonly underWayMs: () => number
  /** Whether this database has events at all. */
  readonly hasEvents: (database: string) => boolean
  /** Has these events written. */
  readonly write: (ids: readonly string[]) => void
}

export interface Swept {
  /** About which there was something to tell. */
  readonly databases: readonly string[]
  /** How many of them nobody else had told of. The rest is only told again, to be sure. */
  readonly missed: number
}

/**
 * Looks at all databases of these buckets, and has an event written for everything that none was written for. What has
 * just changed is left some time to be told by whoever saw it. Throws `CouchError`.
 */
export type Sweep = (buckets: ReadonlySet<number>, signal: AbortSignal) => Promise<Swept>

export function createSweep(options: SweepOptions): Sweep {
  const { couch, ledger, coverage, clock, underWayMs, hasEvents, write } = options
  const eventsFor = (name: string, now: Reading | undefined) => eventsBetween(ledger.get(name), now)

  return async (buckets, signal) => {
    const open = new Map<string, Reading | undefined>()
    const compare = (name: string, now: Reading | undefined) => {
      if (eventsFor(name, now).length === 0) return
      open.set(name, now)
      coverage.expect(name, now)
    }
    const isIts = (name: string) => buckets.has(bucketOf(name)) && hasEvents(name)
    const listed = await listDatabases(couch, isIts, signal)
    for await (const readings of readDatabases(couch, listed, signal)) {
      for (const [name, reading] of readings) compare(name, reading)
    }
    const there = new Set(listed)
    for (const name of ledger.names()) if (isIts(name) && !there.has(name)) compare(name, undefined)

    if (open.size > 0) await clock.sleep(underWayMs(), signal)
    const found = [...open].filter(([name, now]) => eventsFor(name, now).length > 0)
    const missed = found.filter(([name]) => !coverage.isVague(name)).length
    for (const [name, now] of found) write(eventsFor(name, now).map((event) => eventId(event, name)))
    return { databases: found.map(([name]) => name), missed }
  }
}
