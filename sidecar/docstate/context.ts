import type { Logger } from 'pino'
import { Reject } from '../core/errors.ts'
import type { Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/errors.ts'
import type { Writer } from '../couch/writer.ts'
import type { Machines } from '../../ddocs/machine.ts'
import type { Events } from '../events/channels.ts'
import type { Registry } from '../workers/registry.ts'
import { ClaimLost } from './claims/claims.ts'
import { saved } from './documents.ts'
import { failedTries, entryKey, type Attempt } from './attempt.ts'
import type { EntryMail, MailBinding } from './mail.ts'
import type { Telemetry } from './telemetry.ts'
import { readNext, readOther } from './read-next.ts'
import type { WriteDoc } from './write-doc.ts'
import type { Context } from './types.ts'

export interface ContextOptions {
  readonly database: Pick<Database, 'name' | 'find'>
  readonly writer: Writer
  readonly writeDoc: WriteDoc
  readonly mailer: MailBinding
  readonly workers: Registry
  readonly events: Events
  readonly telemetry: Telemetry
  readonly machines: Machines
  readonly now: () => number
  readonly log: Logger
  /** Its effects are withheld. Default they are not. */
  readonly isShadow?: boolean
}

/** What one run of a handler gets, and what the engine wants to know of it afterwards. */
export interface Run {
  readonly context: Context
  /** Effects seen to happen on this try or before (Message-IDs). */
  readonly done: () => readonly string[]
}

/** Most handlers use little of their context: each part is made when it is asked for. */
export function createRun(options: ContextOptions, attempt: Attempt): Run {
  let key: string | undefined
  let log: Logger | undefined
  let mail: EntryMail | undefined

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
      const { key, signal } = context
      return (mail ??= options.mailer.forEntry({ key, done: attempt.done, signal }))
    },
    workers: options.workers,
    events: options.events,
    save: (doc) => save(options, attempt, doc),
    find: (id) => options.database.find(id, {}, { signal: attempt.signal }),
    put: (doc) => put(options, attempt, doc),
  }
  return { context, done: () => mail?.done ?? attempt.done }
}

async function save<D extends Doc>(options: ContextOptions, attempt: Attempt, given: D): Promise<D & StoredDoc> {
  if (attempt.stopped) throw attempt.stopped
  const { writeDoc, machines, now } = options
  const doc = readNext(given, attempt.registration, machines) as Doc as D
  const outcome = await attempt.mutex(() => writeDoc(attempt, ownSave(attempt, doc, machines, now())))
  if (outcome.kind === 'lost') throw new ClaimLost(`${attempt.id} has changed while its handler ran`)
  if (outcome.kind === 'refused') throw new Reject(outcome.failure.code, outcome.failure.reason)
  if (doc.state !== attempt.registration.state) {
    attempt.left = attempt.saved = true
    options.telemetry.written(attempt)
  }
  return { ...doc, _id: attempt.id, _rev: attempt.doc._rev }
}

/** The handler's own save: in the same state it keeps the claim, in another it lets go of it. */
function ownSave(attempt: Attempt, doc: Doc, machines: Machines, now: number): Doc {
  if (doc.state !== attempt.registration.state) return saved(attempt, doc, machines, now)
  const { docstate, _rev } = attempt.doc
  return { ...doc, _id: attempt.id, _rev, ...(docstate === undefined ? {} : { docstate }) }
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
