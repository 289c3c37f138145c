import { Readable } from 'node:stream'
import pino from 'pino'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../core/clock.ts'
import { ConfigError, type Failure } from '../core/errors.ts'
import { ANY_TYPE, type Download } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { createEvents } from '../events/channels.ts'
import { digestOf } from './attachments.ts'
import { Attempt, entryKey } from './attempt.ts'
import { docstateOf } from './classify.ts'
import type { Claims } from './claims/claims.ts'
import { createExecute } from './execute.ts'
import { collectHandlers, type HandlersModule } from './handlers.ts'
import type { Message } from './mail.ts'
import { createSaveOutcome } from './save-outcome.ts'
import { createTelemetry } from './telemetry.ts'
import type { Outcome, Steps } from './types.ts'
import { nextRev, withoutEffects } from './without-effects.ts'

export interface RunOptions {
  /** Number of this attempt; the attempts before have failed. Default 1. */
  readonly attempt?: number
  /** Other documents of the database, for `ctx.find` and `ctx.put`. Default none. */
  readonly documents?: readonly Doc[]
  /** Documents of other databases, by database name, for `ctx.db`. Default none. */
  readonly databases?: Readonly<Record<string, readonly Doc[]>>
  /** Results of steps of earlier attempts, for `ctx.once`. Default none. */
  readonly steps?: Steps
  /** Name of the database. Default `test`. */
  readonly database?: string
  /** Called by `ctx.mail.send`, which throws what this function throws and otherwise records the message. */
  readonly onMail?: (message: Message) => void
}

export interface RunResult {
  /** `next`, `nothing`, `failed` (retried, or the last attempt), `rejected`, `claim-lost`, `stopped`. */
  readonly outcome: Outcome['kind']
  /** The document that the handler returned. */
  readonly next: (Doc & { readonly state: string }) | undefined
  /** The error that the handler threw. */
  readonly failure: Failure | undefined
  /** The document as stored after the run. */
  readonly stored: StoredDoc
  /** Time of the next attempt, if one is due. */
  readonly retryAt: Date | undefined
  /** Documents saved by `ctx.save`, in order. */
  readonly saved: readonly Doc[]
  /** Documents written by `ctx.put`. */
  readonly put: readonly Doc[]
  /** Documents written by `ctx.db(…).put`. */
  readonly putElsewhere: readonly { readonly database: string; readonly doc: Doc }[]
  /** Results of the steps (`ctx.once`), including those of earlier attempts. */
  readonly steps: Steps
  readonly mails: readonly Message[]
  /** Attachments stored by `ctx.attach`, in order. */
  readonly attached: readonly { readonly name: string; readonly type: string; readonly body: Buffer }[]
  /** `ctx.key`. */
  readonly key: string
}

/**
 * Runs the handler for this document once, without a server, and returns the outcome. It uses the engine's own code for
 * the handler, its timeout, the check of its result, and the stored document.
 *
 * @param doc gets a `_rev` if it has none. Attachments, also of other documents, are inline as in CouchDB:
 * `_attachments: { 'photo.jpg': { content_type: 'image/jpeg', data: base64 } }`
 * @throws ConfigError if the handlers are faulty, or none is registered for this type and state
 * @example
 * const { next, mails } = await run(handlers, { _id: 'o', type: 'order', state: 'paid' }, { attempt: 2 })
 */
export async function run<M extends Machines>(
  handlers: HandlersModule<M>,
  doc: Doc,
  options: RunOptions = {},
): Promise<RunResult> {
  const { machines, registrations, shadows } = collectHandlers(handlers)
  const registration = [...registrations, ...shadows].find(
    ({ type, state }) => type === doc.type && state === doc.state,
  )
  if (!registration) {
    const handled = registrations.map(({ type, state }) => `${type} in state ${state}`).join(', ')
    throw new ConfigError([
      `expected a handler for ${String(doc.type)} in state ${String(doc.state)}; there are: ${handled}`,
    ])
  }
  const { attempt: number = 1, documents = [], databases = {}, steps = {}, database: name = 'test', onMail } = options
  const others = new Map(documents.map((one) => [one._id, withRev(one)]))
  const find = (id: string) => Promise.resolve(others.get(id))
  const findIn = (other: string, id: string) => {
    const docs = Object.hasOwn(databases, other) ? databases[other]! : []
    const found = docs.find(({ _id }) => _id === id)
    return Promise.resolve(found && withRev(found))
  }
  const hasDatabase = (other: string) => Object.hasOwn(databases, other)
  const attachment = (other: string, id: string, attached: string) => {
    const docs = other === name ? [doc, ...documents] : Object.hasOwn(databases, other) ? databases[other]! : []
    return Promise.resolve(bodyIn(docs.find(({ _id }) => _id === id)?._attachments, attached))
  }
  const { withheld, parts } = withoutEffects({
    ...{ name, onMail, find, findIn, hasDatabase, attachment },
    keepsLong: true,
  })

  const attempt = new Attempt(registration, withTries(withRev(doc), number - 1, steps), 'test/1')
  const over = new AbortController()
  const log = pino({ level: 'silent' })
  const telemetry = createTelemetry(createEvents({ log }), name, () => systemClock.ticks())
  const [clock, signal] = [systemClock, over.signal]

  const execute = createExecute({
    ...{ ...parts, telemetry, machines, clock, signal, log },
    events: createEvents({ log }),
  })
  const claims = { drop: () => undefined } as unknown as Claims
  const saveOutcome = createSaveOutcome({
    ...{
      writeDoc: parts.writeDoc,
      claims,
      machines,
      telemetry,
      clock,
      random: () => 0,
      log,
      logOutcome: () => undefined,
    },
  })

  const outcome = await execute(attempt)
  const { put, putElsewhere, mails, attached } = withheld
  const saved = [...withheld.saved]
  await saveOutcome(attempt, outcome)
  over.abort(new Error('the run is over'))
  const retryAt = docstateOf(attempt.doc)?.retry_at
  return {
    ...{
      outcome: outcome.kind,
      stored: attempt.doc,
      saved,
      put,
      putElsewhere,
      mails,
      attached,
      steps: attempt.steps,
      key: entryKey(name, attempt),
    },
    next: outcome.kind === 'next' ? (outcome.doc as RunResult['next']) : undefined,
    failure: 'failure' in outcome ? outcome.failure : undefined,
    retryAt: retryAt === undefined ? undefined : new Date(retryAt),
  }
}

const withRev = (doc: Doc): StoredDoc => ({ ...withoutBodies(doc), _rev: doc._rev ?? nextRev(undefined) })

/** The document as CouchDB returns it: attachments without their bodies. */
function withoutBodies(doc: Doc): Doc {
  if (!isObject(doc._attachments)) return doc
  const stubs = Object.entries(doc._attachments).map(([name, given]) => {
    if (!isObject(given) || typeof given.data !== 'string') return [name, given] as const
    const { data, ...known } = given
    const body = Buffer.from(data, 'base64')
    return [name, { revpos: 1, ...known, stub: true, length: body.length, digest: digestOf(body) }] as const
  })
  return { ...doc, _attachments: Object.fromEntries(stubs) }
}

function bodyIn(attachments: unknown, name: string): Download | undefined {
  const given = isObject(attachments) && Object.hasOwn(attachments, name) ? attachments[name] : undefined
  if (!isObject(given) || typeof given.data !== 'string') return undefined
  const bytes = Readable.from([Buffer.from(given.data, 'base64')])
  return { type: typeof given.content_type === 'string' ? given.content_type : ANY_TYPE, bytes }
}

const withTries = (doc: StoredDoc, failed: number, steps: Steps): StoredDoc =>
  failed > 0 || Object.keys(steps).length > 0
    ? { ...doc, docstate: { state: doc.state, entry: doc._rev, attempts: failed, steps } }
    : doc
