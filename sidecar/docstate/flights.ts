import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { BudgetShare } from '../core/byte-budget.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './assess.ts'
import { Flight } from './flight.ts'
import type { Fly, FlightEnd } from './fly.ts'
import type { Registration } from './types.ts'

/** A document to be taken all the way. */
export interface Departure {
  readonly doc: StoredDoc
  /** Length of its text. */
  readonly bytes: number
  readonly registration: Registration
  readonly fly: Fly
  /** The part of the memory that it takes from. */
  readonly share: BudgetShare
  /** Called when what it asked for is done, or written down where it will be found again. */
  readonly settled: () => void
}

export interface Landing {
  readonly departure: Departure
  readonly flight: Flight
  readonly end: FlightEnd
  /** The last revision that came by meanwhile and was not a claim of this flight. */
  readonly newer: string | undefined
  /** A revision of it came by that nobody has read. */
  readonly unread: boolean
}

interface InFlight {
  readonly departure: Departure
  readonly flight: Flight
  newer: string | undefined
  unread: boolean
  readonly settled: (() => void)[]
}

export interface Landings {
  readonly has: (id: string) => boolean
  readonly end: () => void
}

export interface FlightsOptions {
  readonly log: Logger
  readonly onLanded: (landing: Landing) => void
}

/** What a document in flight costs beside its text: the parsed object, the flight, its promises. */
const OVERHEAD_BYTES = 2048

/** All documents under way: never more than one flight for an id, never more bytes than there is memory for. */
export class Flights {
  readonly #options: FlightsOptions
  readonly #byId = new Map<string, InFlight>()
  readonly #idle: (() => void)[] = []
  readonly #landings = new Set<Map<string, boolean>>()
  /** With a count it makes tokens: nobody else has the same. */
  readonly #process = randomUUID()
  #count = 0

  constructor(options: FlightsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byId.size
  }

  /** How many have been sent on their way. */
  get started(): number {
    return this.#count
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  /** If this document is in flight: what came by is remembered, `settled` is called with the flight's own. */
  join(doc: StoredDoc, settled: () => void): boolean {
    const already = this.#byId.get(doc._id)
    if (!already) return false
    const { flight } = already
    if (doc._conflicts) flight.branched = true
    if (flight.branched || docstateOf(doc)?.claim?.token !== flight.token) {
      already.newer = doc._rev
      flight.saw(doc._rev)
    }
    already.settled.push(settled)
    return true
  }

  /** If this document is in flight: this revision of it came by, which asks for nothing. */
  outdate(id: string, rev: string): void {
    this.#byId.get(id)?.flight.saw(rev)
  }

  /** If this document is in flight: this revision of it came by, and nobody has read it. */
  noteUnread(id: string, rev: string, branched: boolean): boolean {
    const already = this.#byId.get(id)
    if (!already) return false
    already.flight.saw(rev)
    already.flight.maybeBranched ||= branched
    already.unread = true
    return true
  }

  /** Sends it on its way, if there is memory for it. `join` it first. */
  tryStart(departure: Departure): boolean {
    const { doc, bytes, registration, fly, share, settled } = departure
    const cost = bytes + OVERHEAD_BYTES
    if (!share.tryEnter(cost)) return false
    const flight = new Flight(registration, doc, `${this.#process}/${++this.#count}`)
    const entry: InFlight = { departure, flight, newer: undefined, unread: false, settled: [settled] }
    this.#byId.set(doc._id, entry)
    void fly(flight)
      .catch((thrown: unknown) => this.#crashed(flight, thrown))
      .then((end) => this.#land(entry, end, cost))
    return true
  }

  /** Whose flights of these land from now on, until `end`: what was asked for before may be older than what they saved. */
  watchLandings(wanted: readonly string[]): Landings {
    const landed = new Map(wanted.map((id) => [id, false]))
    this.#landings.add(landed)
    return { has: (id) => landed.get(id) === true, end: () => void this.#landings.delete(landed) }
  }

  /** The database was made again: what is in flight is of the one before. */
  forgetPast(): void {
    for (const { flight } of this.#byId.values()) flight.ofPast = true
  }

  /** Resolves when nothing is in flight. */
  async whenIdle(): Promise<void> {
    if (this.#byId.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Tells every handler that runs to stop. */
  stop(reason: Error): void {
    for (const { flight } of this.#byId.values()) flight.stop(reason)
  }

  /** Only the end of all retries, or a mistake of ours, comes here. */
  #crashed(flight: Flight, thrown: unknown): FlightEnd {
    if (!flight.stopped) this.#options.log.error({ doc: flight.id, err: thrown }, 'a flight broke off')
    return flight.stopped ? 'given-up' : 'not-taken'
  }

  #land({ departure, flight, newer, unread, settled }: InFlight, end: FlightEnd, cost: number): void {
    this.#byId.delete(flight.id)
    for (const wanted of this.#landings) if (wanted.has(flight.id)) wanted.set(flight.id, true)
    departure.share.leave(cost)
    if (end !== 'given-up') for (const settle of settled) settle()
    this.#options.onLanded({ departure, flight, end, newer, unread })
    if (this.#byId.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
