import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { errored, failed, parked, released } from './outcome-documents.ts'
import { timesLost, type Attempt } from './attempt.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { Telemetry } from './telemetry.ts'
import type { WriteDoc } from './write-doc.ts'

export interface RescueOptions {
  readonly writeDoc: WriteDoc
  readonly telemetry: Telemetry
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** A document that so many workers died of, by itself since the second, is what they died of. */
const MOST_LOST = 3

/**
 * Takes over an entry whose worker did not renew its claim for a whole lease. If its handler had not begun, it is free
 * again, as if nothing had been. If it had, it is unknown whether its effect happened: `park` leaves that to a person,
 * `retry` counts it as a failed try, after which the handler runs again with the same key, and by itself.
 */
export function createRescue({ writeDoc, telemetry, clock, random, log }: RescueOptions): RunAttempt {
  /** What is written of it, and told. */
  function judge(attempt: Attempt, worker: string | undefined): { readonly doc: StoredDoc; readonly told: string } {
    const { registration, before } = attempt
    const now = clock.now()
    if (before?.claim?.begun === false) {
      return { doc: released(attempt), told: 'free again: its handler had not begun when its worker was lost' }
    }
    const reason = `the worker ${worker} did not renew its claim for a whole lease while it handled this`
    if (registration.mode === 'unsafe' && registration.options.onLost === 'park') {
      return { doc: parked(attempt, reason, now), told: 'parked: it is unknown whether its effect happened' }
    }
    const lost = timesLost(before) + 1
    if (lost >= MOST_LOST) {
      const failure = { code: 'lost', reason: `${lost} workers were lost while they handled this; the last: ${reason}` }
      return { doc: errored(attempt, failure, now), told: 'ended in error: its workers were lost too often' }
    }
    attempt.before = { state: registration.state, ...before, lost }
    const doc = failed(attempt, { code: 'lost', reason }, now, random)
    const told =
      doc.state === 'error' ? 'ended in error: its tries are used up' : 'tried again by itself: its worker was lost'
    return { doc, told }
  }

  return async (attempt) => {
    const worker = attempt.before?.claim?.worker
    const { doc, told } = judge(attempt, worker)
    const { kind } = await writeDoc(attempt, doc)
    if (kind === 'stored' || kind === 'accepted') {
      const { type, state } = attempt.registration
      attempt.saved = true
      log.warn({ doc: attempt.id, type, state, worker }, told)
      telemetry.counts.of(attempt.registration).inherited += 1
      telemetry.channel('claim:inherited')?.publish({ ...telemetry.of(attempt), worker: String(worker) })
      if (attempt.before?.claim?.begun !== false) telemetry.written(attempt)
    }
    return kind === 'refused' ? 'not-taken' : 'settled'
  }
}
