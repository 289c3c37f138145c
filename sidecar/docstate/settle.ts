import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Failure } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import type { Machines } from '../../ddocs/machine.ts'
import type { Claims } from './claims/claims.ts'
import { errored, failed, parked, saved } from './documents.ts'
import type { Flight } from './flight.ts'
import type { FlightEnd } from './fly.ts'
import type { Life } from './life.ts'
import type { TellOutcome } from './outcome-log.ts'
import type { Store, Stored } from './store.ts'
import type { Outcome } from './types.ts'

export interface SettleOptions {
  readonly store: Store
  readonly claims: Claims
  readonly machines: Machines
  readonly life: Life
  readonly tell: TellOutcome
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Writes down what came of a run. The only writer of outcomes. */
export type Settle = (flight: Flight, outcome: Outcome) => Promise<FlightEnd>

const LOST: Failure = { code: 'lost', reason: 'its worker stopped before it was done' }

export function createSettle({ store, claims, machines, life, tell, clock, random, log }: SettleOptions): Settle {
  /** The document that says it, or undefined where there is nothing to say. */
  function documentFor(flight: Flight, outcome: Outcome, now: number): Doc | undefined {
    const { mode, options } = flight.registration
    if (flight.left) return undefined // it has no say about the state it has left
    switch (outcome.kind) {
      case 'next':
        return saved(flight, outcome.doc, machines, now)
      case 'nothing':
        return saved(flight, flight.doc, machines, now)
      case 'failed':
        return failed(flight, outcome.failure, now, random)
      case 'rejected':
        return errored(flight, outcome.failure, now)
      case 'claim-lost':
        return undefined
      case 'stopped':
        if (mode === 'safe') return undefined
        return options.onLost === 'park' ? parked(flight, LOST.reason, now) : failed(flight, LOST, now, random)
    }
  }

  async function write(flight: Flight, doc: Doc, now: number): Promise<Stored> {
    const first = await store(flight, doc)
    if (first.kind !== 'refused') return first
    log.warn({ doc: flight.id, ...first.failure }, 'CouchDB refused the document of a handler')
    const second = await store(flight, errored(flight, refusedSave(first.failure), now))
    if (second.kind !== 'refused') return second
    return store(flight, parked(flight, refusedSave(first.failure).reason, now))
  }

  return async (flight, outcome) => {
    const { type, state, mode } = flight.registration
    const now = clock.now()
    const doc = documentFor(flight, outcome, now)
    const ids = { doc: flight.id, type, state, outcome: outcome.kind }
    const written = await flight.mutex(async () => {
      try {
        return doc && (await write(flight, doc, now))
      } catch (thrown) {
        log.warn(ids, 'the sidecar stopped while the result was being saved: whether it is saved is unknown')
        throw thrown
      } finally {
        claims.drop(flight) // before anything else may write: what is saved is let go of, not renewed
      }
    })

    if (written?.kind === 'stored' || written?.kind === 'accepted') {
      flight.saved = true
      life.written(flight)
      tell(flight, outcome)
    } else if (outcome.kind === 'stopped') tell(flight, outcome)
    if (written?.kind === 'refused') log.error({ ...ids, ...written.failure }, 'CouchDB refuses every record of it')
    else if (outcome.kind === 'claim-lost' || (written?.kind === 'lost' && mode === 'unsafe')) {
      log.warn(ids, 'the document was taken over while its handler ran; its outcome is not saved')
    }
    if (written?.kind === 'refused') return 'not-taken'
    return outcome.kind === 'claim-lost' && !flight.left ? 'look-again' : 'settled' // our claim may still stand in it
  }
}

const refusedSave = ({ code, reason }: Failure): Failure => ({
  code: 'save_refused',
  reason: `CouchDB refused the handler's document (${code}): ${reason}`,
})
