import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { ByteGate } from '../core/byte-gate.ts'
import type { Clock } from '../core/clock.ts'
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
  /** Called when what it asked for is done, or written down where it will be found again. */
  readonly settled: () => void
  /** Ends the waiting for memory. */
  readonly signal: AbortSignal
}

export interface Landing {
  readonly departure: Departure
  readonly flight: Flight
  readonly end: FlightEnd
  /** The last revision that came by meanwhile and was not a claim of this flight. */
  readonly newer: string | undefined
}

interface InFlight {
  readonly departure: Departure
  readonly flight: Flight
  newer: string | undefined
  readonly settled: (() => void)[]
}

export interface FlightsOptions {
  readonly clock: Clock
  /** Bytes of documents in flight. */
  readonly memory: number
  readonly log: Logger
  readonly onLanded: (landing: Landing) => void
}

/** What a document in flight costs beside its text: the parsed object, the flight, its promises. */
const OVERHEAD_BYTES = 2048
/** A few documents may hold more than half of the memory for hours; for as long as that nobody starves. */
const HUNGRY_MS = 1000

/** All documents under way: never more than one flight for an id, never more bytes than there is memory for. */
export class Flights {
  readonly #options: FlightsOptions
  readonly #gate: ByteGate
  readonly #byId = new Map<string, InFlight>()
  readonly #idle: (() => void)[] = []
  /** With a count it makes tokens: nobody else has the same. */
  readonly #process = randomUUID()
  #count = 0

  constructor(options: FlightsOptions) {
    this.#options = options
    this.#gate = new ByteGate(options.memory)
  }

  get size(): number {
    return this.#byId.size
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  /** If this document is in flight: what came by is remembered, `settled` is called with the flight's own. */
  join(doc: StoredDoc, settled: () => void): boolean {
    const already = this.#byId.get(doc._id)
    if (!already) return false
    if (docstateOf(doc)?.claim?.token !== already.flight.token) already.newer = doc._rev
    already.settled.push(settled)
    return true
  }

  /** Resolves when there was memory for it and it is on its way. Rejects with the signal's reason. */
  async start(departure: Departure): Promise<void> {
    const { doc, bytes, registration, fly, settled, signal } = departure
    const cost = bytes + OVERHEAD_BYTES
    if (!this.#gate.tryEnter(cost)) {
      await this.#gate.enter(cost, signal)
      if (this.join(doc, settled)) return this.#gate.leave(cost) // it came by another way meanwhile
    }
    const flight = new Flight(registration, doc, `${this.#process}/${++this.#count}`)
    const entry: InFlight = { departure, flight, newer: undefined, settled: [settled] }
    this.#byId.set(doc._id, entry)
    void fly(flight)
      .catch((thrown: unknown) => this.#crashed(flight, thrown))
      .then((end) => this.#land(entry, end, cost))
  }

  /** Resolves when more is wanted: not while plenty of documents wait in memory. */
  async whenHungry(signal: AbortSignal): Promise<void> {
    if (!this.#gate.full) return
    const enough = new AbortController()
    const stop = () => enough.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    try {
      await Promise.race([this.#gate.whenLow(enough.signal), this.#options.clock.sleep(HUNGRY_MS, enough.signal)])
    } finally {
      enough.abort(new Error('waited enough'))
      signal.removeEventListener('abort', stop)
    }
  }

  /** Resolves when nothing is in flight. */
  async whenIdle(): Promise<void> {
    if (this.#byId.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Tells every handler that runs to stop. */
  stop(reason: Error): void {
    for (const { flight } of this.#byId.values()) flight.stop(reason)
  }

  /** Only the end of all patience, or a mistake of ours, comes here. */
  #crashed(flight: Flight, thrown: unknown): FlightEnd {
    if (!flight.stopped) this.#options.log.error({ doc: flight.id, err: thrown }, 'a flight broke off')
    return flight.stopped ? 'given-up' : 'not-taken'
  }

  #land({ departure, flight, newer, settled }: InFlight, end: FlightEnd, cost: number): void {
    this.#byId.delete(flight.id)
    this.#gate.leave(cost)
    if (end !== 'given-up') for (const settle of settled) settle()
    this.#options.onLanded({ departure, flight, end, newer })
    if (this.#byId.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
