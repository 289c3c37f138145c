import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Writer } from '../couch/writer.ts'
import { docstateOf, type Assess } from './assess.ts'
import { withDocstate } from './documents.ts'
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
  readonly due: DueQueue
  readonly writer: Writer
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
    this.flights = new Flights({ memory, log, onLanded: (landing) => this.#landed(landing) })
  }

  /**
   * Looks at a document whose text has this length. Resolves when it has been taken in, which waits for memory;
   * `settled` is called when what it asked for is done, or written down where it will be found again.
   */
  async offer(doc: StoredDoc, bytes: number, settled: () => void, signal: AbortSignal): Promise<void> {
    if (this.flights.join(doc, settled)) return
    const { assess, clock, due, flyOf, recover } = this.#options
    const assessment = assess(doc, clock.now())
    switch (assessment.kind) {
      case 'ignore':
        this.pass(doc._id)
        return settled()
      case 'wait':
        due.add(doc._id, assessment.until)
        return settled()
      case 'untimed':
        return this.#stamp(doc, assessment.afterMs, settled)
      case 'claimed': {
        const { claim, registration } = assessment
        const remaining = this.#leases.remaining(doc, claim)
        if (remaining === 0) return this.flights.start({ doc, bytes, registration, fly: recover, settled, signal })
        due.add(doc._id, clock.now() + remaining)
        return settled()
      }
      case 'ready': {
        const { registration } = assessment
        this.#leases.forget(doc._id)
        return this.flights.start({ doc, bytes, registration, fly: flyOf(registration), settled, signal })
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
