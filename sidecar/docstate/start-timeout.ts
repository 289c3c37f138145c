import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import { docstateOf } from './classify.ts'
import { withDocstate } from './documents.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { WriteDoc } from './write-doc.ts'

export interface StartTimeoutOptions {
  readonly writeDoc: WriteDoc
  readonly clock: Clock
  readonly log: Logger
}

/** Writes down when a state ends, where that is missing: so it ends on time, on any worker. */
export function createStartTimeout({ writeDoc, clock, log }: StartTimeoutOptions): (afterMs: number) => RunAttempt {
  return (afterMs) => async (attempt) => {
    const { id, doc } = attempt
    const docstate = { ...docstateOf(doc), state: String(doc.state), timeout_at: isoTime(clock.now() + afterMs) }
    const outcome = await writeDoc(attempt, withDocstate(doc, docstate))
    if (outcome.kind !== 'refused') return 'settled'
    log.warn({ doc: id, ...outcome.failure }, 'CouchDB refuses to store the timeout of a state')
    return 'not-taken'
  }
}
