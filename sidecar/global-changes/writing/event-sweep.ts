import type { Clock } from '../../core/clock.ts'
import type { Reading, Survey } from '../../couch/survey.ts'
import { eventId, type DatabaseEvent } from '../event-documents.ts'
import type { Coverage } from './coverage.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { eventsBetween, noteBefore } from './lookout.ts'

export interface SweepOptions {
  readonly survey: Survey
  readonly ledger: Ledger
  readonly coverage: Coverage
  readonly clock: Clock
  /** How long it may take from a change until its event is written, milliseconds. */
  readonly underWayMs: () => number
  /** Whether events of this database are written. */
  readonly hasEvents: (database: string) => boolean
  /** Passes these events to the writer. */
  readonly write: (ids: readonly string[]) => void
}

interface Found {
  readonly now: Reading | undefined
  /** Events that are not written yet. */
  readonly events: readonly DatabaseEvent[]
}

export interface Swept {
  /** Databases with events to write. */
  readonly databases: readonly string[]
  /** How many of them no source had reported. The others are only reported again, to be sure. */
  readonly missed: number
}

/**
 * Reads all databases of these buckets, and writes every missing event. A recent change is first left to its source for
 * some time. Throws `CouchError`.
 */
export type Sweep = (buckets: ReadonlySet<number>, signal: AbortSignal) => Promise<Swept>

export function createSweep(options: SweepOptions): Sweep {
  const { survey, ledger, coverage, clock, underWayMs, hasEvents, write } = options

  /** Finds missing events of databases that can be read, and of those that are gone. */
  async function compare(names: readonly string[], isGone: (name: string) => boolean, signal: AbortSignal) {
    const found = new Map<string, Found>()
    const unread = new Set(names)
    const note = (name: string, now: Reading | undefined) => {
      const events = eventsBetween(ledger.get(name), now)
      if (events.length === 0) return now && ledger.confirm(name, now)
      found.set(name, { now, events })
      if (now) coverage.expect(name, now)
    }
    for await (const readings of survey.read(names, signal)) {
      for (const [name, now] of readings) {
        unread.delete(name)
        note(name, now)
      }
    }
    for (const name of unread) if (isGone(name)) note(name, undefined)
    return found
  }

  function notesFor(found: ReadonlyMap<string, Found>): Map<string, Reading> {
    const notes = new Map<string, Reading>()
    for (const [name, { now, events }] of found) {
      if (!ledger.has(bucketOf(name))) continue // the writer checks again
      const note = noteBefore(ledger.get(name), now, new Set(events))
      if (note) notes.set(name, note)
    }
    return notes
  }

  return async (buckets, signal) => {
    const isIts = (name: string) => buckets.has(bucketOf(name)) && hasEvents(name)
    const known = ledger.names().filter(isIts) // before the list, which lacks databases that are created later
    const listed = await survey.list(isIts, signal)
    const isListed = new Set(listed)
    const unlisted = known.filter((name) => !isListed.has(name))
    const open = [...(await compare(listed, () => false, signal)).keys(), ...unlisted]
    if (open.length === 0) return { databases: [], missed: 0 }

    await clock.sleep(underWayMs(), signal)
    const found = await compare(open, (name) => !isListed.has(name), signal)
    const databases = [...found.keys()]
    const missed = databases.filter((name) => !coverage.isVague(name)).length
    await ledger.note(notesFor(found), signal) // all at once: the writer would store records for each request
    for (const [name, { events }] of found) write(events.map((event) => eventId(event, name)))
    return { databases, missed }
  }
}
