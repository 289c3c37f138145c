import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { shellWord } from '../core/shell-word.ts'
import { cut } from '../core/failure.ts'
import type { Failure } from '../core/errors.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { failedTries, failingSince, type Attempt } from './attempt.ts'
import type { RecentFailures } from './recent-failures.ts'
import type { Outcome } from './types.ts'

export interface OutcomeLogOptions {
  readonly database: string
  /** Receives each failure that has a stack. */
  readonly recentFailures?: RecentFailures | undefined
  readonly clock: Clock
  readonly log: Logger
  /** On abort, gathered failures are logged at once. */
  readonly signal: AbortSignal
}

/** Logs the outcome of a run, as written in the attempt's document. */
export type LogOutcome = (attempt: Attempt, outcome: Outcome) => void

/** Equal failures within `GATHER_MS` that are logged one by one; further ones are counted. */
const FEW = 5
const GATHER_MS = 60_000
/** Compared characters of a reason. Failures with different reasons, for example with an `_id`, are not equal. */
const MAX_KEY = 200
/** Maximum different failures within `GATHER_MS`; further ones are counted together. */
const MOST_KINDS = 100
const OTHERS = 'others'

/**
 * Logs each handled document at `info`. Each failed attempt is logged with its number and the time of the next, the
 * last one separately. Most equal failures are only counted: if a server is down, every document fails alike.
 */
export function createOutcomeLog({ database, recentFailures, clock, log, signal }: OutcomeLogOptions): LogOutcome {
  const gathered = new Map<string, { readonly about: object; logged: number; more: number }>()

  /** True for the first failures of a kind; further ones are counted, and their number is logged later. */
  function isToBeLogged(about: object, { code, reason }: Failure): boolean {
    const own = JSON.stringify([about, code, cut(reason, MAX_KEY)])
    const isOneTooMany = !gathered.has(own) && gathered.size >= MOST_KINDS
    const key = isOneTooMany ? OTHERS : own
    const alike = gathered.get(key)
    if (!alike) {
      const fresh = { about: isOneTooMany ? {} : { ...about, code, reason }, logged: 1, more: 0 }
      gathered.set(key, fresh)
      const logRest = () => {
        gathered.delete(key)
        if (fresh.more > 0) log.warn({ ...fresh.about, documents: fresh.more }, 'more documents failed')
      }
      clock.sleep(GATHER_MS, signal).then(logRest, logRest)
      return true
    }
    if (alike.logged < FEW) return (alike.logged += 1) > 0
    alike.more += 1
    return false
  }

  /** Time since the first failed attempt, as text; empty below one minute. */
  function lastedFor(doc: StoredDoc): string {
    const since = failingSince(docstateOf(doc))
    const minutes = since === undefined ? 0 : Math.round((clock.now() - Date.parse(since)) / 60_000)
    if (minutes < 1) return ''
    return minutes < 120 ? ` in ${minutes} min` : ` in ${Math.round(minutes / 60)} h`
  }

  function logFailed(attempt: Attempt, outcome: Outcome & { kind: 'failed' | 'rejected' }): void {
    const { type, state, options } = attempt.registration
    const { code, reason } = outcome.failure
    const docstate = docstateOf(attempt.doc)
    const tries = failedTries(docstate)
    const stack = 'stack' in outcome ? outcome.stack : undefined
    if (stack !== undefined) recentFailures?.add({ database, id: attempt.id, type, state, code, stack })
    const err = stack === undefined ? {} : { err: { message: reason, stack } }
    const line = { doc: attempt.id, type, state, code, reason, ...err }
    if (docstate?.retry_at !== undefined) {
      if (!isToBeLogged({ type, state, outcome: 'failed' }, outcome.failure)) return
      const of = options.attempts === Number.MAX_SAFE_INTEGER ? '' : ` of ${options.attempts}`
      log.warn(
        { ...line, try: tries, retry_at: docstate.retry_at },
        `try ${tries}${of} failed; the next is due at ${docstate.retry_at}`,
      )
      return
    }
    if (!isToBeLogged({ type, state, outcome: 'error' }, outcome.failure)) return
    const retry = retryCommand(database, attempt.id)
    const what = tries === 1 ? '1 try' : `${tries} tries`
    if (outcome.kind === 'rejected')
      log.warn({ ...line, retry }, 'rejected by its handler: the document is in state error')
    else log.error({ ...line, retry }, `gave up after ${what}${lastedFor(attempt.doc)}; retry with: ${retry}`)
  }

  function logDone({ id, doc, registration: { type, state } }: Attempt): void {
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
        return logDone(attempt)
      case 'failed':
      case 'rejected':
        return logFailed(attempt, outcome)
      case 'stopped':
        return log.warn({ doc: attempt.id, type, state }, 'the sidecar stopped before the handler finished')
      case 'claim-lost':
        return undefined
    }
  }
}

/** The command that retries a document, quoted for a shell: a client's `_id` may have spaces, quotes or `;`. */
export function retryCommand(database: string, id: string): string {
  const args = [database, id].map(shellWord)
  return ['couchdb-sidecar retry', ...(id.startsWith('-') ? ['--'] : []), ...args].join(' ')
}
