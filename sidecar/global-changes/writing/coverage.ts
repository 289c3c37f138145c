import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { parseEventId, type DatabaseEvent } from '../documents.ts'
import type { Ledger } from './ledger.ts'
import { knownAfter, type Reading } from './lookout.ts'
import { readDatabases } from './survey.ts'

/** How far databases were before events about them were written. */
export type Readings = ReadonlyMap<string, Reading | undefined>

/** Between two readings for updates alone. */
const SELDOM_MS = 1000

/**
 * Finds out what the events that are about to be written will have told: how far a database is has to be read before
 * its event is written, or a change between the two would never be told. A reading costs more than the write, so it is
 * done for databases that come and go, and otherwise once a second; the others are found by the next sweep.
 */
export class Coverage {
  readonly #couch: Couch
  readonly #ledger: Ledger
  readonly #clock: Clock
  /** Read by a sweep, which has events written about them. */
  readonly #swept = new Map<string, Reading | undefined>()
  #readAt = -Infinity

  constructor(couch: Couch, ledger: Ledger, clock: Clock) {
    this.#couch = couch
    this.#ledger = ledger
    this.#clock = clock
  }

  /** What a sweep has read: events of it are to be written now. */
  add(database: string, reading: Reading | undefined): void {
    this.#swept.set(database, reading)
  }

  async before(ids: readonly string[], signal: AbortSignal): Promise<Readings> {
    const told = eventsIn(ids)
    const readings = new Map<string, Reading | undefined>()
    const isSeldom = this.#clock.ticks() - this.#readAt >= SELDOM_MS
    const names: string[] = []
    for (const [name, events] of told) {
      if (this.#swept.has(name)) readings.set(name, this.#swept.get(name))
      else if (isSeldom || events.has('created') || events.has('deleted')) names.push(name)
    }
    if (names.length === 0) return readings
    this.#readAt = this.#clock.ticks()
    for await (const found of readDatabases(this.#couch, names, signal)) {
      for (const name of found.keys()) readings.set(name, found.get(name))
    }
    for (const name of names) if (!readings.has(name)) readings.set(name, undefined)
    return readings
  }

  written(ids: readonly string[], readings: Readings): void {
    for (const [name, events] of eventsIn(ids)) {
      if (!readings.has(name)) continue
      const reading = readings.get(name)
      if (this.#swept.get(name) === reading) this.#swept.delete(name)
      this.#ledger.set(name, knownAfter(this.#ledger.get(name), reading, events))
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
