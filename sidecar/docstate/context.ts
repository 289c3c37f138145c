import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { Reject } from '../core/errors.ts'
import { ANY_TYPE, type Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Writer } from '../couch/writer.ts'
import type { Machines } from '../../ddocs/machine.ts'
import type { Events } from '../events/channels.ts'
import type { Registry } from '../workers/registry.ts'
import { attach, readAttachment } from './attachments.ts'
import { requireStored } from './claims/claims.ts'
import { copyJson, jsonOf } from '../core/copy.ts'
import { failureOf, SHOWN } from '../core/failure.ts'
import { saved, uponNow, withSteps } from './outcome-documents.ts'
import { failedTries, entryKey, type Attempt } from './attempt.ts'
import type { EntryMail, MailBinding } from './mail.ts'
import type { Telemetry } from './telemetry.ts'
import { readNext, readOther } from './read-next.ts'
import type { WriteDoc } from './write-doc.ts'
import type { Context, OtherDatabase } from './types.ts'

export interface ContextOptions {
  readonly database: Pick<Database, 'name' | 'find' | 'beside' | 'attach' | 'attachment'>
  readonly writer: Writer
  readonly writeDoc: WriteDoc
  readonly mailer: MailBinding
  readonly workers: Registry
  readonly events: Events
  readonly telemetry: Telemetry
  readonly machines: Machines
  readonly clock: Pick<Clock, 'now' | 'ticks'>
  readonly log: Logger
  /** True if the effects of the run are withheld. Default false. */
  readonly isShadow?: boolean
}

/** The context of one handler run, and the results that the engine needs afterwards. */
export interface Run {
  readonly context: Context
  /** Effects that happened in this or an earlier attempt (Message-IDs). */
  readonly done: () => readonly string[]
}

/** Creates each part of the context on first use, since most handlers use few parts. */
export function createRun(options: ContextOptions, attempt: Attempt): Run {
  let key: string | undefined
  let log: Logger | undefined
  let mail: EntryMail | undefined
  const steps = new Map<string, Promise<unknown>>()

  const context: Context = {
    database: options.database.name,
    get key() {
      return (key ??= entryKey(options.database.name, attempt))
    },
    get attempt() {
      return failedTries(attempt.before) + 1
    },
    get signal() {
      return attempt.signal
    },
    isShadow: options.isShadow ?? false,
    get log() {
      const { type, state } = attempt.registration
      return (log ??= options.log.child({ doc: attempt.id, type, state }))
    },
    get mail() {
      const { key, signal, database } = context
      return (mail ??= options.mailer.forEntry({
        document: { database, id: attempt.id },
        key,
        done: attempt.done,
        signal,
      }))
    },
    workers: options.workers,
    events: options.events,
    save: (doc) => save(options, attempt, doc),
    find: (id) => options.database.find(id, {}, { signal: attempt.signal }),
    put: (doc) => put(options, attempt, doc),
    db: (name) => otherDatabase(options, attempt, name),
    attachment: (name) => readAttachment(options.database, attempt.id, name, attempt.signal),
    attach: (name, body, type = ANY_TYPE) => attach(options, attempt, name, body, type),
    once<T>(name: string, step: (key: string) => T | Promise<T>) {
      const running = steps.get(name) ?? once(options, attempt, { name, step, key: stepKey(context.key, name) })
      steps.set(name, running)
      running.catch(() => steps.delete(name)) // a failed step may run again in this attempt
      return running as Promise<T>
    },
  }
  return { context, done: () => mail?.done ?? attempt.done }
}

async function save<D extends Doc>(options: ContextOptions, attempt: Attempt, given: D): Promise<D & StoredDoc> {
  if (attempt.stopped) throw attempt.stopped
  const { writeDoc, machines, clock } = options
  const doc = readNext(given, attempt.registration, machines)
  const outcome = await attempt.mutex(() =>
    writeDoc(attempt, ownSave(attempt, uponNow(attempt, doc), machines, clock.now())),
  )
  requireStored(attempt, outcome)
  if (doc.state !== attempt.registration.state) {
    attempt.left = attempt.saved = true
    options.telemetry.written(attempt)
  }
  attempt.given = doc
  return copyJson(attempt.doc) as D & StoredDoc
}

/** The document that `ctx.save` writes: it keeps the claim in the same state, and drops the claim in another. */
function ownSave(attempt: Attempt, doc: Doc, machines: Machines, now: number): Doc {
  if (doc.state !== attempt.registration.state) return saved(attempt, doc, machines, now)
  const { docstate, _rev } = attempt.doc
  return { ...doc, _id: attempt.id, _rev, ...(docstate === undefined ? {} : { docstate }) }
}

interface Step {
  readonly name: string
  readonly step: (key: string) => unknown
  readonly key: string
}

const LONGEST_NAME = 100

async function once({ writeDoc }: ContextOptions, attempt: Attempt, { name, step, key }: Step): Promise<unknown> {
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) {
    throw new Reject(
      'bad_step',
      `ctx.once: expected a name of 1 to ${LONGEST_NAME} characters, got ${inspect(name, SHOWN)}`,
    )
  }
  if (attempt.stopped) throw attempt.stopped
  if (Object.hasOwn(attempt.steps, name)) return copyJson(attempt.steps[name])
  const result = await step(key)
  const kept = result === undefined ? null : readResult(result, name)
  attempt.steps = { ...attempt.steps, [name]: kept }
  if (attempt.stopped || attempt.left) return copyJson(kept) // the last save contains the result, if anything is saved
  const outcome = await attempt.mutex(() => writeDoc(attempt, withSteps(attempt)))
  requireStored(attempt, outcome)
  return copyJson(kept)
}

/** The key of a step: the same in every attempt of an entry. */
const stepKey = (key: string, name: string): string =>
  createHash('sha256')
    .update(JSON.stringify([key, name]))
    .digest('base64url')
    .slice(0, 32)

function readResult(result: unknown, name: string): unknown {
  try {
    return jsonOf(result)
  } catch (thrown) {
    throw new Reject('bad_step', `the step ${name} returned a value without a JSON form: ${failureOf(thrown).reason}`)
  }
}

function otherDatabase({ database }: ContextOptions, attempt: Attempt, name: string): OtherDatabase {
  const other = database.beside(name)
  return {
    name,
    find: (id) => other.find(id, {}, { signal: attempt.signal }),
    async put(given) {
      if (attempt.stopped) throw attempt.stopped
      const doc = readOther(given, attempt.registration) as typeof given
      return { ...doc, _rev: await other.put(doc) } // without the signal: a stop must not lose the answer
    },
    attachment: (id, name) => readAttachment(other, id, name, attempt.signal),
  }
}

async function put<D extends Doc>({ writer }: ContextOptions, attempt: Attempt, given: D): Promise<D & StoredDoc> {
  if (attempt.stopped) throw attempt.stopped
  const doc = readOther(given, attempt.registration) as D
  const written = await writer.write(doc, { first: true })
  const request = `PUT ${doc._id}`
  switch (written.kind) {
    case 'stored':
    case 'accepted':
      return { ...doc, _rev: written.rev }
    case 'conflict':
      throw new CouchError('conflict', { request, status: 409, reason: 'Document update conflict.' })
    case 'refused':
      throw new CouchError(written.code, { request, reason: written.reason })
  }
}
