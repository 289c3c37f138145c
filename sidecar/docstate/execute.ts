import type { Logger } from 'pino'
import { failureOf, Reject } from '../core/errors.ts'
import type { Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/errors.ts'
import type { Writer } from '../couch/writer.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { ClaimLost } from './claims.ts'
import { saved } from './documents.ts'
import { effectsDone, failedTries, keyOf, type Flight } from './flight.ts'
import type { MailBinding } from './mail.ts'
import type { Store } from './store.ts'
import type { Context, Outcome } from './types.ts'

export interface ExecuteOptions {
  readonly database: Database
  readonly writer: Writer
  readonly store: Store
  readonly mailer: MailBinding
  readonly machines: Machines
  readonly now: () => number
  readonly log: Logger
}

export type Execute = (flight: Flight) => Promise<Outcome>

/** Runs the handler of a flight and says what came of it. Never throws. */
export function createExecute(options: ExecuteOptions): Execute {
  const { database, writer, store, mailer, machines, now } = options

  return async (flight) => {
    const { registration, abort } = flight
    const { type, state, handler } = registration
    const key = keyOf(database.name, flight)
    const signal = abort.signal
    const mail = mailer.forEntry({ key, done: effectsDone(flight.before), signal })

    async function save<D extends Doc>(doc: D): Promise<D & StoredDoc> {
      signal.throwIfAborted()
      const outcome = await flight.exclusive(() => store(flight, ownSave(flight, doc, machines, now())))
      if (outcome.kind === 'lost') throw new ClaimLost(`${flight.id} has changed while its handler ran`)
      if (outcome.kind === 'refused') throw new Reject(outcome.failure.code, outcome.failure.reason)
      flight.left ||= doc.state !== state
      return { ...doc, _id: flight.id, _rev: flight.doc._rev }
    }

    const ctx: Context = {
      key,
      attempt: failedTries(flight.before) + 1,
      signal,
      log: options.log.child({ db: database.name, doc: flight.id, type, state }),
      mail,
      save,
      find: (id) => database.find(id, {}, { signal }),
      put: (doc) => put(writer, doc),
    }

    try {
      const doc: unknown = await untilAborted(signal, handler(flight.doc, ctx))
      if (doc === undefined) return { kind: 'nothing' }
      return checkNext(doc, flight, machines)
    } catch (thrown) {
      if (signal.reason instanceof ClaimLost || thrown instanceof ClaimLost) return { kind: 'claim-lost' }
      if (signal.aborted) return { kind: 'stopped' }
      if (thrown instanceof Reject) return { kind: 'rejected', failure: failureOf(thrown) }
      return { kind: 'failed', failure: failureOf(thrown), done: mail.done }
    }
  }
}

/** A handler that does not listen to its signal is not waited for; what it still does counts for nothing. */
async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The handler's own save: in the same state it keeps the claim, in another it lets go of it. */
function ownSave(flight: Flight, doc: Doc, machines: Machines, now: number): Doc {
  if (doc.state !== flight.registration.state) return saved(flight, doc, machines, now)
  const { docstate, _rev } = flight.doc
  return { ...doc, _id: flight.id, _rev, ...(docstate === undefined ? {} : { docstate }) }
}

/** What JavaScript lets through and the types do not. */
function checkNext(doc: unknown, flight: Flight, machines: Machines): Outcome {
  const { type, state } = flight.registration
  const next = doc as Partial<Doc> | null
  const reject = (reason: string): Outcome => ({ kind: 'rejected', failure: { code: 'bad_result', reason } })
  if (typeof next !== 'object' || next === null || typeof next.state !== 'string' || next.type !== type) {
    return reject(`the handler of ${type} in ${state} returned no document of its type with a state`)
  }
  const declared = machines[type]
  if (declared && next.state !== state && declared[state]?.next?.[next.state] !== 'sidecar') {
    return reject(`the machine of ${type} has no transition from ${state} to ${next.state} for the sidecar`)
  }
  return { kind: 'next', doc: next as Doc }
}

async function put<D extends Doc>(writer: Writer, doc: D): Promise<D & StoredDoc> {
  const written = await writer.write(doc)
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
