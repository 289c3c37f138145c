import type { Logger } from 'pino'
import { isoTime } from '../core/clock.ts'
import { docstateOf } from './classify.ts'
import { withDocstate } from './outcome-documents.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { WriteDoc } from './write-doc.ts'

export interface StartTimeoutOptions {
  readonly writeDoc: WriteDoc
  readonly log: Logger
}

/** Records the end of a state's timeout in the document, so that any worker ends the state on time. */
export function createStartTimeout({ writeDoc, log }: StartTimeoutOptions): (until: number) => RunAttempt {
  return (until) => async (attempt) => {
    const { id, doc } = attempt
    const docstate = { ...docstateOf(doc), state: String(doc.state), timeout_at: isoTime(until) }
    const outcome = await writeDoc(attempt, withDocstate(doc, docstate))
    if (outcome.kind === 'lost') return 'overtaken'
    if (outcome.kind !== 'refused') return 'settled'
    log.warn({ doc: id, ...outcome.failure }, 'CouchDB refuses to store the timeout of a state')
    return 'not-taken'
  }
}
