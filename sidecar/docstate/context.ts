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
import { failedTries, keyOf, type Flight } from './flight.ts'
import type { EntryMail, MailBinding } from './mail.ts'
import type { Life } from './life.ts'
import { readNext, readOther } from './read-next.ts'
import type { Store } from './store.ts'
import type { Context } from './types.ts'

export interface ContextOptions {
  readonly database: Database
  readonly writer: Writer
  readonly store: Store
  readonly mailer: MailBinding
  readonly workers: Registry
  readonly events: Events
  readonly life: Life
  readonly machines: Machines
  readonly now: () => number
  readonly log: Logger
}

/** What one run of a handler gets, and what the engine wants to know of it afterwards. */
export interface Run {
  readonly context: Context
  /** Effects seen to happen on this try or before (Message-IDs). */
  readonly done: () => readonly string[]
}

/** Most handlers use little of their context: each part is made when it is asked for. */
export function createRun(options: ContextOptions, flight: Flight): Run {
  let key: string | undefined
  let log: Logger | undefined
  let mail: EntryMail | undefined

  const context: Context = {
    database: options.database.name,
    get key() {
      return (key ??= keyOf(options.database.name, flight))
    },
    get attempt() {
      return failedTries(flight.before) + 1
    },
    get signal() {
      return flight.signal
    },
    get log() {
      const { type, state } = flight.registration
      return (log ??= options.log.child({ doc: flight.id, type, state }))
    },
    get mail() {
      const { key, signal } = context
      return (mail ??= options.mailer.forEntry({ key, done: flight.done, signal }))
    },
    workers: options.workers,
    events: options.events,
    save: (doc) => save(options, flight, doc),
    find: (id) => options.database.find(id, {}, { signal: flight.signal }),
    put: (doc) => put(options, flight, doc),
  }
  return { context, done: () => mail?.done ?? flight.done }
}

async function save<D extends Doc>(options: ContextOptions, flight: Flight, given: D): Promise<D & StoredDoc> {
  if (flight.stopped) throw flight.stopped
  const { store, machines, now } = options
  const doc = readNext(given, flight.registration, machines) as Doc as D
  const outcome = await flight.mutex(() => store(flight, ownSave(flight, doc, machines, now())))
  if (outcome.kind === 'lost') throw new ClaimLost(`${flight.id} has changed while its handler ran`)
  if (outcome.kind === 'refused') throw new Reject(outcome.failure.code, outcome.failure.reason)
  if (doc.state !== flight.registration.state) {
    flight.left = flight.saved = true
    options.life.written(flight)
  }
  return { ...doc, _id: flight.id, _rev: flight.doc._rev }
}

/** The handler's own save: in the same state it keeps the claim, in another it lets go of it. */
function ownSave(flight: Flight, doc: Doc, machines: Machines, now: number): Doc {
  if (doc.state !== flight.registration.state) return saved(flight, doc, machines, now)
  const { docstate, _rev } = flight.doc
  return { ...doc, _id: flight.id, _rev, ...(docstate === undefined ? {} : { docstate }) }
}

async function put<D extends Doc>({ writer }: ContextOptions, flight: Flight, given: D): Promise<D & StoredDoc> {
  if (flight.stopped) throw flight.stopped
  const doc = readOther(given, flight.registration) as D
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
