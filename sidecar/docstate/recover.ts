import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { isoTime } from '../core/clock.ts'
import { errored, parked, withDocstate } from './documents.ts'
import { failedTries } from './flight.ts'
import type { Fly } from './fly.ts'
import type { LaneOf } from './finding/lanes.ts'
import type { Store } from './store.ts'

export interface RecoverOptions {
  readonly store: Store
  readonly laneOf: LaneOf
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Takes over an entry whose worker gave no sign of life for a whole lease. Whether its effect happened nobody knows:
 * `park` leaves that to a person, `retry` counts it as a failed try and runs the handler again with the same key.
 */
export function createRecover({ store, laneOf, clock, log }: RecoverOptions): Fly {
  return async (flight) => {
    const { registration, before } = flight
    const worker = before?.claim?.worker
    const reason = `the worker ${worker} gave no sign of life for a whole lease while it handled this`
    const ids = { doc: flight.id, type: registration.type, state: registration.state, worker }

    if (registration.mode === 'unsafe' && registration.options.onLost === 'park') {
      const outcome = await store(flight, parked(flight, reason, clock.now()))
      if (outcome.kind === 'stored') log.warn(ids, 'parked: nobody knows whether its effect happened')
      return outcome.kind === 'refused' ? 'not-taken' : 'settled'
    }

    const attempts = failedTries(before) + 1
    const failure = { code: 'lost', reason, at: isoTime(clock.now()) }
    if (attempts >= registration.options.attempts) {
      const outcome = await store(flight, errored(flight, failure, clock.now()))
      if (outcome.kind === 'stored') log.warn(ids, 'ended in error: its workers were lost too often')
      return outcome.kind === 'refused' ? 'not-taken' : 'settled'
    }
    const { claim: _claim, retry_at: _retryAt, ...known } = before ?? { state: registration.state }
    flight.before = { ...known, attempts, failure }
    flight.doc = withDocstate(flight.doc, flight.before)
    const end = await laneOf(registration).fly(flight)
    if (end === 'settled') log.warn(ids, 'taken over from a lost worker') // now: others may have won it
    return end
  }
}
