import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { readDatabase, readDatabases, type Reading } from '../../couch/survey.ts'
import { eventId, parseEventId, type DatabaseEvent } from '../event-documents.ts'
import type { EventPlan } from './event-writer.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { eventsToWrite, isSure, knownAfter, noteBefore } from './lookout.ts'

/** How far databases were before events about them were written; a database that is missing here was not read. */
type Readings = ReadonlyMap<string, Reading | undefined>
type Events = ReadonlyMap<string, ReadonlySet<DatabaseEvent>>

/** Between two readings for updates alone. */
const SELDOM_MS = 1000

/**
 * Decides which events are written, and keeps what they say. How far a database is has to be read before its event is
 * written, or a change between the two would never be told. A reading costs as much as the write, so it is done for
 * databases that come and go, and otherwise once a second. Of the others a sweep tells once more, to be sure.
 */
export class Coverage {
  readonly #couch: Couch
  readonly #ledger: Ledger
  readonly #clock: Clock
  /** As a sweep has found them: whatever is written of them from now on tells that. */
  readonly #expected = new Map<string, Reading>()
  /** Of these an event was written without a reading. */
  readonly #vague = new Set<string>()
  #readAt = -Infinity

  constructor(couch: Couch, ledger: Ledger, clock: Clock) {
    this.#couch = couch
    this.#ledger = ledger
    this.#clock = clock
  }

  expect(database: string, reading: Reading): void {
    this.#expected.set(database, reading)
  }

  /** Whether more may have been told of it than is known. */
  isVague(database: string): boolean {
    return this.#vague.has(database)
  }

  /** Nothing of what was to be written is written. */
  clear(): void {
    this.#expected.clear()
    this.#vague.clear()
  }

  /** What is written of these. Events of buckets that are no longer ours are left to their owner's sweep. */
  async plan(ids: readonly string[], signal: AbortSignal): Promise<EventPlan> {
    const told = new Map([...eventsIn(ids)].filter(([name]) => this.#ledger.has(bucketOf(name))))
    const readings = await this.#read(told, signal)
    const steps: string[][] = [[], []]
    const written = new Map<string, ReadonlySet<DatabaseEvent>>()
    const notes = new Map<string, Reading>()
    for (const [name, events] of told) {
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

  async #read(told: Events, signal: AbortSignal): Promise<Readings> {
    const readings = new Map<string, Reading | undefined>()
    const isTime = this.#clock.ticks() - this.#readAt >= SELDOM_MS
    const names: string[] = []
    for (const [name, events] of told) {
      const known = this.#ledger.get(name)
      const expected = this.#expected.get(name)
      this.#expected.delete(name)
      if (events.has('created') || events.has('deleted') || !isSure(known)) names.push(name)
      else if (expected?.life === known.life) readings.set(name, expected)
      else if (isTime) names.push(name)
    }
    if (names.length === 0) return readings
    this.#readAt = this.#clock.ticks()
    for (const name of names) readings.set(name, undefined)
    for await (const found of readDatabases(this.#couch, names, signal)) {
      for (const [name, reading] of found) readings.set(name, reading)
    }
    for (const [name, reading] of readings) {
      // `_dbs_info` answers `not_found` to every error. That a life has ended is noted, so it has to be true.
      const isInDoubt = !reading && !told.get(name)!.has('deleted') && !this.#ledger.get(name)
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
