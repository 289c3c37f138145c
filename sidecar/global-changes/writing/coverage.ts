import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { readDatabase, readDatabases, type Reading } from '../../couch/survey.ts'
import { eventId, parseEventId, type DatabaseEvent } from '../event-documents.ts'
import type { EventPlan } from './event-writer.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { eventsToWrite, isSure, knownAfter, noteBefore } from './lookout.ts'

/** Positions of databases before their events were written. A database without an entry was not read. */
type Readings = ReadonlyMap<string, Reading | undefined>
type Events = ReadonlyMap<string, ReadonlySet<DatabaseEvent>>

/** In each period, updates are read for this many databases and those of one more write. */
const [READS, PERIOD_MS] = [100, 1000]

/**
 * Decides which events are written, and records what they cover. A database's position must be read before its event is
 * written. Otherwise a change between the two is never reported. In a flood of updates, a read costs as much as the
 * write. So databases that are created or deleted are always read, the others at most about a hundred a second. After a
 * write without a read, a sweep writes the event once more, and its readers read the database for nothing.
 */
export class Coverage {
  readonly #couch: Couch
  readonly #ledger: Ledger
  readonly #clock: Clock
  /** Positions that a sweep found: any event that is written from now on covers them. */
  readonly #expected = new Map<string, Reading>()
  /** Databases whose event was written without a read. */
  readonly #vague = new Set<string>()
  #periodAt = -Infinity
  /** Databases whose updates were read in this period. */
  #reads = 0

  constructor(couch: Couch, ledger: Ledger, clock: Clock) {
    this.#couch = couch
    this.#ledger = ledger
    this.#clock = clock
  }

  expect(database: string, reading: Reading): void {
    this.#expected.set(database, reading)
  }

  /** Whether events may cover more of the database than is recorded. */
  isVague(database: string): boolean {
    return this.#vague.has(database)
  }

  /** Call this when pending events are dropped. */
  clear(): void {
    this.#expected.clear()
    this.#vague.clear()
  }

  /** Decides which of these events are written. Events of another worker's buckets are left to the owner's sweep. */
  async plan(ids: readonly string[], signal: AbortSignal): Promise<EventPlan> {
    const reported = new Map([...eventsIn(ids)].filter(([name]) => this.#ledger.has(bucketOf(name))))
    const readings = await this.#read(reported, signal)
    const steps: string[][] = [[], []]
    const written = new Map<string, ReadonlySet<DatabaseEvent>>()
    const notes = new Map<string, Reading>()
    for (const [name, events] of reported) {
      const [known, read] = [this.#ledger.get(name), readings.get(name)]
      const lists = readings.has(name) ? eventsToWrite(known, read, events) : [[...events]]
      lists.forEach((list, step) => steps[step]!.push(...list.map((event) => eventId(event, name))))
      written.set(name, new Set(lists.flat()))
      const note = noteBefore(known, read, written.get(name)!)
      if (note) notes.set(name, note)
    }
    await this.#ledger.note(notes, signal)
    return { steps, onWritten: () => this.#written(written, readings) }
  }

  #mayRead(): boolean {
    const now = this.#clock.ticks()
    if (now - this.#periodAt >= PERIOD_MS) {
      this.#periodAt = now
      this.#reads = 0
    }
    return this.#reads < READS
  }

  async #read(reported: Events, signal: AbortSignal): Promise<Readings> {
    const readings = new Map<string, Reading | undefined>()
    const mayRead = this.#mayRead()
    const names: string[] = []
    for (const [name, events] of reported) {
      const known = this.#ledger.get(name)
      const expected = this.#expected.get(name)
      this.#expected.delete(name)
      if (events.has('created') || events.has('deleted') || !isSure(known)) names.push(name)
      else if (expected?.life === known.life) readings.set(name, expected)
      else if (mayRead) names.push(name)
    }
    if (names.length === 0) return readings
    this.#reads += names.length
    for (const name of names) readings.set(name, undefined)
    for await (const found of readDatabases(this.#couch, names, signal)) {
      for (const [name, reading] of found) readings.set(name, reading)
    }
    for (const [name, reading] of readings) {
      // `_dbs_info` answers `not_found` to every error. The end of a life is recorded, so it must be certain.
      const isInDoubt = !reading && !reported.get(name)!.has('deleted') && !this.#ledger.get(name)
      if (isInDoubt) readings.set(name, await readDatabase(this.#couch, name, signal))
    }
    return readings
  }

  #written(written: Events, readings: Readings): void {
    for (const [name, events] of written) {
      if (!readings.has(name)) {
        this.#vague.add(name)
        continue
      }
      this.#vague.delete(name)
      this.#ledger.set(name, knownAfter(this.#ledger.get(name), readings.get(name), events))
    }
  }
}

function eventsIn(ids: readonly string[]): Map<string, Set<DatabaseEvent>> {
  const found = new Map<string, Set<DatabaseEvent>>()
  for (const id of ids) {
    const parsed = parseEventId(id)
    if (!parsed) continue
    const events = found.get(parsed.database) ?? new Set()
    found.set(parsed.database, events.add(parsed.event))
  }
  return found
}
