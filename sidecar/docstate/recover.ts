import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { isoTime } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { errored, parked, withDocstate } from './documents.ts'
import { failedTries } from './flight.ts'
import type { Fly } from './fly.ts'
import type { Life } from './life.ts'
import type { LaneOf } from './finding/lanes.ts'
import type { Store } from './store.ts'

export interface RecoverOptions {
  readonly store: Store
  readonly laneOf: LaneOf
  readonly life: Life
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Takes over an entry whose worker gave no sign of life for a whole lease. Whether its effect happened nobody knows:
 * `park` leaves that to a person, `retry` counts it as a failed try and runs the handler again with the same key.
 */
export function createRecover({ store, laneOf, life, clock, log }: RecoverOptions): Fly {
  return async (flight) => {
    const { registration, before } = flight
    const worker = before?.claim?.worker
    const reason = `the worker ${worker} gave no sign of life for a whole lease while it handled this`
    const ids = { doc: flight.id, type: registration.type, state: registration.state, worker }
    const inherited = (what: string) => {
      log.warn(ids, what)
      life.counts.of(registration).inherited += 1
      life.channel('claim:inherited')?.publish({ ...life.of(flight), worker: String(worker) })
    }
    const end = async (doc: StoredDoc, what: string) => {
      const { kind } = await store(flight, doc)
      if (kind === 'stored' || kind === 'accepted') {
        flight.saved = true
        inherited(what)
        life.written(flight)
      }
      return kind === 'refused' ? 'not-taken' : 'settled'
    }

    if (registration.mode === 'unsafe' && registration.options.onLost === 'park') {
      return end(parked(flight, reason, clock.now()), 'parked: nobody knows whether its effect happened')
    }

    const attempts = failedTries(before) + 1
    const failure = { code: 'lost', reason, at: isoTime(clock.now()) }
    if (attempts >= registration.options.attempts) {
      return end(errored(flight, failure, clock.now()), 'ended in error: its workers were lost too often')
    }
    const { claim: _claim, retry_at: _retryAt, ...known } = before ?? { state: registration.state }
    flight.before = { ...known, attempts, failure }
    flight.doc = withDocstate(flight.doc, flight.before)
    const flown = await laneOf(registration).fly(flight)
    if (flown === 'settled' && flight.saved) inherited('taken over from a lost worker') // now: others may have won it
    return flown
  }
}
