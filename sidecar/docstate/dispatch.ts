import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Assess } from './assess.ts'
import type { DueQueue } from './due.ts'
import { Flights, type Landing } from './flights.ts'
import type { Fly } from './fly.ts'
import { LeaseWatch } from './lease-watch.ts'
import type { Registration } from './types.ts'

export interface DispatchOptions {
  readonly assess: Assess
  readonly flyOf: (registration: Registration) => Fly
  /** What becomes of an entry whose worker was lost. */
  readonly recover: Fly
  /** For a state that ends, with no time written down. */
  readonly stamp: (afterMs: number) => Fly
  readonly due: DueQueue
  readonly clock: Clock
  readonly log: Logger
  /** Bytes of documents in flight. */
  readonly memory: number
}

/** When to look again at a document that could not be taken. */
const AGAIN_MS = 30_000

/**
 * Decides for each document that comes by what is to be done, and does it once: one flight for an id, whatever comes
 * by meanwhile collapses into "look again afterwards". Its own writes wake nothing.
 */
export class Dispatch {
  readonly flights: Flights
  readonly #options: DispatchOptions
  readonly #leases: LeaseWatch

  constructor(options: DispatchOptions) {
    const { memory, log, clock } = options
    this.#options = options
    this.#leases = new LeaseWatch(() => clock.ticks())
    this.flights = new Flights({ memory, clock, log, onLanded: (landing) => this.#landed(landing) })
  }

  /**
   * Looks at a document whose text has this length. Resolves when it has been taken in, which waits for memory;
   * `settled` is called when what it asked for is done, or written down where it will be found again.
   */
  async offer(doc: StoredDoc, bytes: number, settled: () => void, signal: AbortSignal): Promise<void> {
    if (this.flights.join(doc, settled)) return
    const { assess, clock, due, flyOf, recover, stamp } = this.#options
    const departure = { doc, bytes, settled, signal }
    const assessment = assess(doc, clock.now())
    switch (assessment.kind) {
      case 'ignore':
        this.pass(doc._id)
        return settled()
      case 'wait':
        due.add(doc._id, assessment.until)
        return settled()
      case 'untimed':
        return this.flights.start({
          ...departure,
          registration: assessment.registration,
          fly: stamp(assessment.afterMs),
        })
      case 'claimed': {
        const { claim, registration } = assessment
        const remaining = this.#leases.remaining(doc, claim)
        if (remaining === 0) return this.flights.start({ ...departure, registration, fly: recover })
        due.add(doc._id, clock.now() + remaining)
        return settled()
      }
      case 'ready': {
        const { registration } = assessment
        this.#leases.forget(doc._id)
        return this.flights.start({ ...departure, registration, fly: flyOf(registration) })
      }
    }
  }

  /** A document that asks for nothing, or not any more, or is gone. */
  pass(id: string): void {
    this.#leases.forget(id)
    this.#options.due.forget(id)
  }

  #landed({ departure, flight, end, newer }: Landing): void {
    const { due, clock } = this.#options
    if (end === 'not-taken') due.add(flight.id, clock.now() + AGAIN_MS)
    else if (newer === flight.doc._rev) this.#again(flight.doc, departure.bytes, departure.signal)
    else if (newer !== undefined) due.add(flight.id)
  }

  /** What we saved came by while we were not done: it may ask for more, as another state or another try. */
  #again(doc: StoredDoc, bytes: number, signal: AbortSignal): void {
    if (this.#options.assess(doc, this.#options.clock.now()).kind === 'ignore') return this.pass(doc._id)
    this.offer(doc, bytes, () => undefined, signal).catch(() => undefined) // only a stop breaks it off
  }
}
