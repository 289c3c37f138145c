import { createHash } from 'node:crypto'
import { createExclusive } from '../core/exclusive.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './assess.ts'
import type { Docstate, Registration } from './types.ts'

/** One document on its way through claim, handler and save. There is never more than one for an id. */
export interface Flight {
  readonly id: string
  readonly registration: Registration
  /** What the engine knew about this entry before this try. */
  before: Docstate | undefined
  /** The revision with which the entry began. */
  readonly entry: string
  /** Tells this try from all others of all workers; written into the claim. */
  readonly token: string
  /** The document as we last read or wrote it; of an unsafe handler, with our claim. */
  doc: StoredDoc
  /** Aborts when the claim is lost, or the sidecar has no more time. */
  readonly abort: AbortController
  /** When our claim was last known to be ours, by our own clock (ticks). Undefined without a claim. */
  provenAt: number | undefined
  /** One write on the document at a time: a renewal, the handler's own save, the last save. */
  readonly exclusive: <T>(work: () => T | Promise<T>) => Promise<T>
  /** The handler has saved the document in another state by itself. */
  left: boolean
}

export function createFlight(registration: Registration, doc: StoredDoc, token: string): Flight {
  const before = docstateOf(doc)
  return {
    id: doc._id,
    registration,
    before,
    entry: before?.entry ?? doc._rev,
    token,
    doc,
    abort: new AbortController(),
    provenAt: undefined,
    exclusive: createExclusive(),
    left: false,
  }
}

/** `ctx.key`: the same for every try of one entry on any worker, since all of them read it off the document. */
export function keyOf(database: string, flight: Flight): string {
  const parts = [database, flight.id, flight.registration.state, flight.entry]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
}

/** How many tries of this entry have failed. What a client wrote there does not count as a number. */
export const failedTries = (docstate: Docstate | undefined): number =>
  Number.isSafeInteger(docstate?.attempts) ? Math.max(0, docstate!.attempts!) : 0

export const effectsDone = (docstate: Docstate | undefined): readonly string[] =>
  Array.isArray(docstate?.done) ? docstate.done.filter((id) => typeof id === 'string') : []
