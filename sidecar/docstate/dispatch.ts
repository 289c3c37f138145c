import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { ByteGate } from '../core/byte-gate.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Writer } from '../couch/writer.ts'
import { docstateOf, type Assess } from './assess.ts'
import { withDocstate } from './documents.ts'
import type { DueQueue } from './due.ts'
import { Flight } from './flight.ts'
import type { Fly, FlightEnd } from './fly.ts'
import { LeaseWatch } from './lease-watch.ts'
import type { Registration } from './types.ts'

export interface DispatchOptions {
  readonly assess: Assess
  readonly flyOf: (registration: Registration) => Fly
  /** What becomes of an entry whose worker was lost. */
  readonly recover: Fly
  readonly due: DueQueue
  readonly writer: Writer
  readonly clock: Clock
  readonly log: Logger
  /** Bytes of documents in flight. */
  readonly memory: number
}

/** What a document in flight costs beside its text: the parsed object, the flight, its promises. */
const OVERHEAD_BYTES = 2048
/** When to look again at a document that could not be taken. */
const AGAIN_MS = 30_000

interface InFlight {
  readonly flight: Flight
  /** The last revision that came by meanwhile and was not a claim of this flight. */
  newer: string | undefined
  readonly settled: (() => void)[]
}

/**
 * Decides for each document that comes by what is to be done, and does it once: one flight for an id, whatever comes
 * by meanwhile collapses into "look again afterwards". Its own writes wake nothing.
 */
export class Dispatch {
  readonly #options: DispatchOptions
  readonly #gate: ByteGate
  readonly #leases: LeaseWatch
  readonly #flights = new Map<string, InFlight>()
  readonly #idle: (() => void)[] = []
  /** With a count it makes tokens: nobody else has the same. */
  readonly #process = randomUUID()
  #count = 0

  constructor(options: DispatchOptions) {
    this.#options = options
    this.#gate = new ByteGate(options.memory)
    this.#leases = new LeaseWatch(() => options.clock.ticks())
  }

  get inFlight(): number {
    return this.#flights.size
  }

  holds(id: string): boolean {
    return this.#flights.has(id)
  }

  /**
   * Looks at a document. Resolves when it has been taken in, which waits for memory; `settled` is called when what
   * it asked for is done, or written down where it will be found again.
   */
  async offer(doc: StoredDoc, bytes: number, settled: () => void, signal: AbortSignal): Promise<void> {
    const { assess, clock, due, flyOf, recover } = this.#options
    const already = this.#flights.get(doc._id)
    if (already) return this.#join(already, doc, settled)

    const assessment = assess(doc, clock.now())
    switch (assessment.kind) {
      case 'ignore':
        return settled()
      case 'wait':
        due.add(doc._id, assessment.until)
        return settled()
      case 'untimed':
        return this.#stamp(doc, assessment.afterMs, settled)
      case 'claimed': {
        const remaining = this.#leases.remaining(doc, assessment.claim)
        if (remaining === 0) return this.#start(doc, recover, assessment.registration, bytes, settled, signal)
        due.add(doc._id, clock.now() + remaining)
        return settled()
      }
      case 'ready':
        return this.#start(doc, flyOf(assessment.registration), assessment.registration, bytes, settled, signal)
    }
  }

  /** Resolves when more is wanted: not while plenty of documents wait in memory. */
  whenHungry(signal: AbortSignal): Promise<void> {
    return this.#gate.whenLow(signal)
  }

  /** Resolves when nothing is in flight. */
  async whenIdle(): Promise<void> {
    if (this.#flights.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Tells every handler that runs to stop. */
  abort(reason: Error): void {
    for (const { flight } of this.#flights.values()) flight.stop(reason)
  }

  #join(already: InFlight, doc: StoredDoc, settled: () => void): void {
    if (docstateOf(doc)?.claim?.token !== already.flight.token) already.newer = doc._rev
    already.settled.push(settled)
  }

  async #start(
    doc: StoredDoc,
    way: (flight: Flight) => Promise<FlightEnd>,
    registration: Registration,
    bytes: number,
    settled: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const cost = bytes + OVERHEAD_BYTES
    await this.#gate.enter(cost, signal)
    const already = this.#flights.get(doc._id) // by another way, while this one waited for memory
    if (already) {
      this.#gate.leave(cost)
      return this.#join(already, doc, settled)
    }
    const entry: InFlight = {
      flight: new Flight(registration, doc, `${this.#process}/${++this.#count}`),
      newer: undefined,
      settled: [settled],
    }
    this.#flights.set(doc._id, entry)
    this.#leases.forget(doc._id)
    void way(entry.flight)
      .catch((thrown: unknown) => this.#crashed(entry.flight, thrown))
      .then((end) => this.#end(entry, end, cost, signal))
  }

  /** Only the end of all patience, or a mistake of ours, comes here. */
  #crashed(flight: Flight, thrown: unknown): FlightEnd {
    if (!flight.stopped) this.#options.log.error({ doc: flight.id, err: thrown }, 'a flight broke off')
    return flight.stopped ? 'given-up' : 'not-taken'
  }

  #end(entry: InFlight, end: FlightEnd, cost: number, signal: AbortSignal): void {
    const { flight, newer, settled } = entry
    const { due, clock } = this.#options
    this.#flights.delete(flight.id)
    this.#gate.leave(cost)
    if (end !== 'given-up') for (const settle of settled) settle()
    if (end === 'not-taken') due.add(flight.id, clock.now() + AGAIN_MS)
    else if (newer === flight.doc._rev) this.#again(flight.doc, cost - OVERHEAD_BYTES, signal)
    else if (newer !== undefined) due.add(flight.id)
    if (this.#flights.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** What we saved came by while we were not done: it may ask for more, as another state or another try. */
  #again(doc: StoredDoc, bytes: number, signal: AbortSignal): void {
    if (this.#options.assess(doc, this.#options.clock.now()).kind === 'ignore') return
    this.offer(doc, bytes, () => undefined, signal).catch(() => undefined) // only a stop breaks it off
  }

  /** The state ends at a certain time, and nobody wrote down when. A lost race does not matter. */
  async #stamp(doc: StoredDoc, afterMs: number, settled: () => void): Promise<void> {
    const { writer, clock, due, log } = this.#options
    const docstate = { ...docstateOf(doc), state: String(doc.state), timeout_at: isoTime(clock.now() + afterMs) }
    try {
      await writer.write(withDocstate(doc, docstate))
    } catch (thrown) {
      log.debug({ doc: doc._id, err: thrown }, 'the end of a state is not written down yet')
      due.add(doc._id, clock.now() + AGAIN_MS)
    }
    settled()
  }
}
