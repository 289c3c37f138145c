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

/** After this many lost workers the document is at fault: since the second loss it runs alone. */
const MOST_LOST = 3

/**
 * Takes over an entry whose worker did not renew its claim for a full lease. If the handler had not begun, the entry is
 * released unchanged. Otherwise it is unknown whether the effect happened. `park` leaves the decision to an operator.
 * `retry` counts a failed attempt; then the handler runs again with the same key, in quarantine.
 */
export function createRescue({ writeDoc, telemetry, clock, random, log }: RescueOptions): RunAttempt {
  /** Decides what to write and to log. */
  function judge(attempt: Attempt, worker: string | undefined): { readonly doc: StoredDoc; readonly text: string } {
    const { registration, before } = attempt
    const now = clock.now()
    if (before?.claim?.begun === false) {
      return { doc: released(attempt), text: 'released: its worker was lost before its handler began' }
    }
    const reason = `the worker ${worker} did not renew its claim for a whole lease while it ran the handler`
    if (registration.mode === 'unsafe' && registration.options.onLost === 'park') {
      return { doc: parked(attempt, reason, now), text: 'parked: it is unknown whether its handler took effect' }
    }
    const lost = timesLost(before) + 1
    if (lost >= MOST_LOST) {
      const failure = {
        code: 'lost',
        reason: `${lost} workers were lost while they ran the handler; the last: ${reason}`,
      }
      return { doc: errored(attempt, failure, now), text: 'failed for good: too many of its workers were lost' }
    }
    attempt.before = { state: registration.state, ...before, lost }
    const doc = failed(attempt, { code: 'lost', reason }, now, random)
    const text =
      doc.state === 'error'
        ? 'failed for good: no attempts are left'
        : 'its worker was lost; the next attempt is isolated'
    return { doc, text }
  }

  return async (attempt) => {
    const worker = attempt.before?.claim?.worker
    const { doc, text } = judge(attempt, worker)
    const { kind } = await writeDoc(attempt, doc)
    if (kind === 'stored' || kind === 'accepted') {
      const { type, state } = attempt.registration
      attempt.saved = true
      log.warn({ doc: attempt.id, type, state, worker }, text)
      telemetry.counts.of(attempt.registration).inherited += 1
      telemetry.channel('claim:inherited')?.publish({ ...telemetry.of(attempt), worker: String(worker) })
      if (attempt.before?.claim?.begun !== false) telemetry.written(attempt)
    }
    return kind === 'refused' ? 'not-taken' : kind === 'lost' ? 'overtaken' : 'settled'
  }
}
