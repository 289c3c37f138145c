import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Failure } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import type { Machines } from '../../ddocs/machine.ts'
import type { Claims } from './claims/claims.ts'
import { errored, failed, parked, saved, uponNow } from './outcome-documents.ts'
import type { Attempt, AttemptEnd } from './attempt.ts'
import type { Telemetry } from './telemetry.ts'
import type { LogOutcome } from './outcome-log.ts'
import type { WriteDoc, WriteResult } from './write-doc.ts'
import type { Outcome } from './types.ts'

export interface SaveOutcomeOptions {
  readonly writeDoc: WriteDoc
  readonly claims: Claims
  readonly machines: Machines
  readonly telemetry: Telemetry
  readonly logOutcome: LogOutcome
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Saves the outcome of a run. No other part writes outcomes. */
export type SaveOutcome = (attempt: Attempt, outcome: Outcome) => Promise<AttemptEnd>

const LOST: Failure = { code: 'lost', reason: 'the worker stopped before the handler had finished' }

export function createSaveOutcome({
  writeDoc,
  claims,
  machines,
  telemetry,
  logOutcome,
  clock,
  random,
  log,
}: SaveOutcomeOptions): SaveOutcome {
  /** The document that records the outcome; undefined if nothing has to be saved. */
  function documentFor(attempt: Attempt, outcome: Outcome, now: number): Doc | undefined {
    const { mode, options } = attempt.registration
    if (attempt.left) return undefined // the handler has left the state: its outcome no longer applies
    switch (outcome.kind) {
      case 'next':
        return saved(attempt, uponNow(attempt, outcome.doc), machines, now)
      case 'nothing':
        return saved(attempt, attempt.doc, machines, now)
      case 'failed':
        return failed(attempt, outcome.failure, now, random, outcome.again)
      case 'rejected':
        return errored(attempt, outcome.failure, now)
      case 'claim-lost':
        return undefined
      case 'stopped':
        if (mode === 'safe') return undefined
        return options.onLost === 'park' ? parked(attempt, LOST.reason, now) : failed(attempt, LOST, now, random)
    }
  }

  async function write(attempt: Attempt, doc: Doc, now: number): Promise<WriteResult> {
    const first = await writeDoc(attempt, doc)
    if (first.kind !== 'refused') return first
    log.warn({ doc: attempt.id, ...first.failure }, 'CouchDB refused the document of a handler')
    const second = await writeDoc(attempt, errored(attempt, refusedSave(first.failure), now))
    if (second.kind !== 'refused') return second
    return writeDoc(attempt, parked(attempt, refusedSave(first.failure).reason, now))
  }

  return async (attempt, outcome) => {
    const { type, state, mode } = attempt.registration
    const now = clock.now()
    const ids = { doc: attempt.id, type, state, outcome: outcome.kind }
    const written = await attempt.mutex(async () => {
      try {
        const doc = documentFor(attempt, outcome, now)
        return doc && (await write(attempt, doc, now))
      } catch (thrown) {
        log.warn(ids, 'the sidecar stopped while the result was being saved: whether it is saved is unknown')
        throw thrown
      } finally {
        claims.drop(attempt) // within the mutex: no renewal may follow the save
      }
    })

    if (written?.kind === 'stored' || written?.kind === 'accepted') {
      attempt.saved = true
      telemetry.written(attempt)
      logOutcome(attempt, outcome)
    } else if (outcome.kind === 'stopped') logOutcome(attempt, outcome)
    if (written?.kind === 'refused')
      log.error({ ...ids, ...written.failure }, 'CouchDB refuses every record of the outcome')
    else if (outcome.kind === 'claim-lost' || (written?.kind === 'lost' && mode === 'unsafe')) {
      log.warn(ids, 'another worker took the document over while its handler ran; its outcome is not saved')
    }
    if (written?.kind === 'refused') return 'not-taken'
    if (outcome.kind === 'claim-lost' && !attempt.left) return 'look-again' // the claim may still be stored
    return written?.kind === 'lost' ? 'overtaken' : 'settled'
  }
}

const refusedSave = ({ code, reason }: Failure): Failure => ({
  code: 'save_refused',
  reason: `CouchDB refused the handler's document (${code}): ${reason}`,
})
