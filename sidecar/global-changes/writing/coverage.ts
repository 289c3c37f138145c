import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { readDatabases, type Reading } from '../../couch/survey.ts'
import { parseEventId, type DatabaseEvent } from '../documents.ts'
import type { Ledger } from './ledger.ts'
import { knownAfter } from './lookout.ts'

/** How far databases were before events about them were written. */
export type Readings = ReadonlyMap<string, Reading | undefined>

/** Between two readings for updates alone. */
const SELDOM_MS = 1000

/**
 * Finds out what the events that are about to be written will have told: how far a database is has to be read before
 * its event is written, or a change between the two would never be told. A reading costs as much as the write, so it is
 * done for databases that come and go, and otherwise once a second. Of the others a sweep tells once more, to be sure.
 */
export class Coverage {
  readonly #couch: Couch
  readonly #ledger: Ledger
  readonly #clock: Clock
  /** As a sweep has found them: whatever is written of them from now on tells that. */
  readonly #expected = new Map<string, Reading | undefined>()
  /** Of these an event was written without a reading. */
  readonly #vague = new Set<string>()
  #readAt = -Infinity

  constructor(couch: Couch, ledger: Ledger, clock: Clock) {
    this.#couch = couch
    this.#ledger = ledger
    this.#clock = clock
  }

  expect(database: string, reading: Reading | undefined): void {
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

  async before(ids: readonly string[], signal: AbortSignal): Promise<Readings> {
    const readings = new Map<string, Reading | undefined>()
    const isTime = this.#clock.ticks() - this.#readAt >= SELDOM_MS
    const names: string[] = []
    for (const [name, events] of eventsIn(ids)) {
      if (events.has('created') || events.has('deleted')) names.push(name)
      else if (this.#expected.has(name)) readings.set(name, this.#expected.get(name))
      else if (isTime) names.push(name)
      this.#expected.delete(name)
    }
    if (names.length === 0) return readings
    this.#readAt = this.#clock.ticks()
    for (const name of names) readings.set(name, undefined)
    for await (const found of readDatabases(this.#couch, names, signal)) {
      for (const [name, reading] of found) readings.set(name, reading)
    }
    return readings
  }

  written(ids: readonly string[], readings: Readings): void {
    for (const [name, events] of eventsIn(ids)) {
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
