import { onAbort } from '../core/on-abort.ts'
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { Semaphore } from '../core/semaphore.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { createEvents, type Events } from '../events/channels.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { Attempt, failedTries } from './attempt.ts'
import { docstateOf, shadowOf, type DispatchTable } from './classify.ts'
import { createExecute } from './execute.ts'
import { createTelemetry, type Telemetry } from './telemetry.ts'
import type { Outcome, Registration } from './types.ts'
import { withoutEffects, type Withheld } from './without-effects.ts'

export interface ShadowsOptions {
  readonly database: Database
  readonly table: () => DispatchTable
  /** Whether this worker runs a shadow handler on a document. */
  readonly isOurs: (pair: TypeAndState, id: string) => boolean
  readonly telemetry: Telemetry
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Cancels every request. */
  readonly signal: AbortSignal
  /** Aborted once no further handler may start; running shadow handlers are stopped. */
  readonly closing: AbortSignal
}

/** Handlers whose effects are withheld. They run beside all others and delay nothing. */
export interface Shadows {
  /** Runs the shadow handlers for the document's state, unless they have already run for this entry. */
  offer(doc: StoredDoc): void
}

/** Maximum waiting documents of a handler; further ones are skipped. */
const MOST_WAITING = 1000
/** Maximum remembered entries that a handler has run for. */
const MOST_KNOWN = 10_000

export function createShadows(options: ShadowsOptions): Shadows {
  const { database, table, isOurs, telemetry, events, clock, log, signal, closing } = options
  const silent = createEvents({ log })
  const tried = new WeakMap<Registration, ReturnType<typeof createTrial>>()

  function createTrial(registration: Registration) {
    const { type, state } = registration
    telemetry.counts.countAs(registration, shadowOf(registration))
    const own: Telemetry = { ...createTelemetry(silent, database.name, () => clock.ticks()), counts: telemetry.counts }
    const semaphore = new Semaphore(() => registration.options.concurrency)
    const known = new Map<string, string>() // entries by id, the oldest first
    let isLeftOut = false

    async function run(doc: StoredDoc): Promise<void> {
      const find = (id: string, until: AbortSignal | undefined) => database.find(id, {}, { signal: until })
      const { withheld, parts } = withoutEffects({
        ...{ name: database.name, find },
        findIn: (other, id, until) => database.beside(other).find(id, {}, { signal: until }),
        attachment: (other, id, name, until) => database.beside(other).attachment(id, name, until),
      })
      const execute = createExecute({
        ...{ ...parts, events: silent, telemetry: own, machines: table().machines, clock, signal, log },
        isShadow: true,
      })
      const attempt = new Attempt(registration, doc, randomUUID())
      const stopListening = onAbort(closing, () => attempt.stop(new Error('the sidecar stops')))
      const outcome = await execute(attempt).finally(stopListening)
      if (outcome.kind !== 'stopped') report(doc, outcome, withheld)
    }

    function report(
      { _id: id }: StoredDoc,
      outcome: Outcome,
      { saved, put, putElsewhere, mails, attached }: Withheld,
    ): void {
      const next = outcome.kind === 'next' ? String(outcome.doc.state) : null
      const failure = 'failure' in outcome ? { code: outcome.failure.code, reason: outcome.failure.reason } : {}
      const would = {
        saves: saved.length,
        puts: put.length + putElsewhere.length,
        mails: mails.length,
        attachments: attached.length,
      }
      const about = { doc: id, type, state, outcome: outcome.kind, would: { next, ...would }, ...failure }
      const err = outcome.kind === 'failed' && outcome.stack !== undefined ? { err: { stack: outcome.stack } } : {}
      log[outcome.kind === 'failed' ? 'warn' : 'info'](
        { ...about, ...err },
        'a shadow handler has run; its effects are withheld',
      )
      events
        .channel('handler:withheld')
        ?.publish({ database: database.name, id, type, state, outcome: outcome.kind, next, ...would })
    }

    return (doc: StoredDoc) => {
      const docstate = docstateOf(doc)
      if (failedTries(docstate) > 0 || docstate?.handled !== undefined) return
      const entry = entryOf(doc, known.get(doc._id))
      if (entry === known.get(doc._id)) return
      if (semaphore.waiting >= MOST_WAITING) {
        if (!isLeftOut)
          log.warn({ type, state }, 'documents arrive faster than their shadow handler runs: some are skipped')
        isLeftOut = true
        return
      }
      known.delete(doc._id)
      known.set(doc._id, entry)
      if (known.size > MOST_KNOWN) known.delete(known.keys().next().value!)
      void semaphore
        .run(() => run(doc), false, closing)
        .catch((err: unknown) => {
          if (!closing.aborted) log.error({ doc: doc._id, err }, 'internal error: a shadow handler failed')
        })
    }
  }

  return {
    offer(doc) {
      const { type, state } = doc
      for (const registration of table().shadows ?? []) {
        if (registration.type !== type || registration.state !== state) continue
        if (closing.aborted || !isOurs(shadowOf(registration), doc._id)) continue
        const trial = tried.get(registration) ?? createTrial(registration)
        tried.set(registration, trial)
        trial(doc)
      }
    },
  }
}

/** The revision with which the entry began. A revision that only records the state's timeout does not count. */
function entryOf(doc: StoredDoc, before: string | undefined): string {
  const { entry = doc._rev, timeout_at } = docstateOf(doc) ?? {}
  const isNext = before !== undefined && parseInt(entry) === parseInt(before) + 1
  return timeout_at !== undefined && isNext ? before : entry
}
