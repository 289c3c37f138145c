import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { shellWord } from '../core/shell-word.ts'
import { cut } from '../core/failure.ts'
import type { Failure } from '../core/errors.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { failedTries, failingSince, type Attempt } from './attempt.ts'
import type { Outcome } from './types.ts'

export interface OutcomeLogOptions {
  readonly database: string
  readonly clock: Clock
  readonly log: Logger
  /** The last chance to tell what was gathered. */
  readonly signal: AbortSignal
}

/** Tells, in the log, what came of a run, as it is written in the attempt's document. */
export type TellOutcome = (attempt: Attempt, outcome: Outcome) => void

/** In this time so many equal failures are logged one by one, and the number of the others. */
const FEW = 5
const GATHER_MS = 60_000
/** Characters of a reason: failures with different ones, as with an `_id` in them, are not equal. */
const MAX_KEY = 200
/** Beyond so many different failures in that time, the rest are counted together. */
const MOST_KINDS = 100
const OTHERS = 'others'

/**
 * One line for each document that was handled, at `info`; for each try that failed which it was and when the next comes; another
 * for the last. A server that is away fails every document alike, so that most of those are only counted.
 */
export function createOutcomeLog({ database, clock, log, signal }: OutcomeLogOptions): TellOutcome {
  const gathered = new Map<string, { readonly about: object; told: number; more: number }>()

  /** True if it is one of the first of its kind; the others are counted, and told of later. */
  function isToBeTold(about: object, { code, reason }: Failure): boolean {
    const own = JSON.stringify([about, code, cut(reason, MAX_KEY)])
    const isOneTooMany = !gathered.has(own) && gathered.size >= MOST_KINDS
    const key = isOneTooMany ? OTHERS : own
    const alike = gathered.get(key)
    if (!alike) {
      const fresh = { about: isOneTooMany ? {} : { ...about, code, reason }, told: 1, more: 0 }
      gathered.set(key, fresh)
      const tell = () => {
        gathered.delete(key)
        if (fresh.more > 0) log.warn({ ...fresh.about, documents: fresh.more }, 'more documents failed')
      }
      clock.sleep(GATHER_MS, signal).then(tell, tell)
      return true
    }
    if (alike.told < FEW) return (alike.told += 1) > 0
    alike.more += 1
    return false
  }

  /** How long ago the first try failed, from a minute on. */
  function lastedFor(doc: StoredDoc): string {
    const since = failingSince(docstateOf(doc))
    const minutes = since === undefined ? 0 : Math.round((clock.now() - Date.parse(since)) / 60_000)
    if (minutes < 1) return ''
    return minutes < 120 ? ` in ${minutes} min` : ` in ${Math.round(minutes / 60)} h`
  }

  function tellFailed(attempt: Attempt, outcome: Outcome & { kind: 'failed' | 'rejected' }): void {
    const { type, state, options } = attempt.registration
    const { code, reason } = outcome.failure
    const docstate = docstateOf(attempt.doc)
    const tries = failedTries(docstate)
    const stack =
      'stack' in outcome && outcome.stack !== undefined ? { err: { message: reason, stack: outcome.stack } } : {}
    const line = { doc: attempt.id, type, state, code, reason, ...stack }
    if (docstate?.retry_at !== undefined) {
      if (!isToBeTold({ type, state, outcome: 'failed' }, outcome.failure)) return
      const of = options.attempts === Number.MAX_SAFE_INTEGER ? '' : ` of ${options.attempts}`
      log.warn(
        { ...line, try: tries, retry_at: docstate.retry_at },
        `try ${tries}${of} failed; the next is due at ${docstate.retry_at}`,
      )
      return
    }
    if (!isToBeTold({ type, state, outcome: 'error' }, outcome.failure)) return
    const retry = retryCommand(database, attempt.id)
    const what = tries === 1 ? '1 try' : `${tries} tries`
    if (outcome.kind === 'rejected')
      log.warn({ ...line, retry }, 'rejected by its handler: the document is in state error')
    else log.error({ ...line, retry }, `gave up after ${what}${lastedFor(attempt.doc)}; retry with: ${retry}`)
  }

  function tellDone({ id, doc, registration: { type, state } }: Attempt): void {
    const { failed_in: failedIn, parked } = docstateOf(doc) ?? {}
    const line = { doc: id, type, state, next: doc.state }
    if (failedIn === undefined && !parked) return log.info(line, 'handled')
    const retry = retryCommand(database, id)
    log.error({ ...line, retry }, 'the handler has finished, but CouchDB refuses its result')
  }

  return (attempt, outcome) => {
    const { type, state } = attempt.registration
    switch (outcome.kind) {
      case 'next':
      case 'nothing':
        return tellDone(attempt)
      case 'failed':
      case 'rejected':
        return tellFailed(attempt, outcome)
      case 'stopped':
        return log.warn({ doc: attempt.id, type, state }, 'the sidecar stopped before the handler finished')
      case 'claim-lost':
        return undefined
    }
  }
}

/** What brings a document back, to be copied into a shell: its `_id` may be a stranger's, with spaces, quotes or `;`. */
export function retryCommand(database: string, id: string): string {
  const args = [database, id].map(shellWord)
  return ['couchdb-sidecar retry', ...(id.startsWith('-') ? ['--'] : []), ...args].join(' ')
}
