/** Documents on their way into the inbox, and what is answered of each, in CouchDB's words. */
import { randomUUID } from 'node:crypto'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Received } from './inbox.ts'
import { HttpError } from '../http/http-errors.ts'
import { isJsonObject, type JsonObject } from '../http/json-body.ts'

/** Of one request. */
export const MAX_DOCS = 20
const FULL_S = 60

export type Row =
  | { readonly ok: true; readonly id: unknown; readonly rev: string }
  | { readonly id: unknown; readonly error: 'forbidden' | 'conflict'; readonly reason: string }

/** Undefined where there is no room for it: nothing can be said of it but that it is to come again. */
export function rowOf(id: unknown, received: Received): Row | undefined {
  switch (received.kind) {
    case 'taken':
    case 'repeated':
      return { ok: true, id, rev: received.rev }
    case 'refused':
      return { id, error: 'forbidden', reason: received.reason }
    case 'conflict':
      return { id, error: 'conflict', reason: 'Document update conflict.' }
    case 'full':
      return undefined
  }
}

/** As CouchDB: a document without an id gets a random one. */
export const withId = (doc: JsonObject): JsonObject => ({
  ...doc,
  _id: doc._id === undefined ? randomUUID().replaceAll('-', '') : doc._id,
})

/** What `_bulk_docs` brings. Throws `HttpError`. */
export function docsFrom({ docs, new_edits: edits }: JsonObject) {
  if (!Array.isArray(docs)) throw new HttpError(400, 'bad_request', 'POST body must include `docs` parameter.')
  if (!docs.every(isJsonObject)) throw new HttpError(400, 'bad_request', 'Document must be a JSON object')
  if (docs.length > MAX_DOCS) {
    const reason = `Expected ${MAX_DOCS} documents at most, got ${docs.length}; send them in smaller batches.`
    throw new HttpError(413, 'max_bulk_docs_count_exceeded', reason)
  }
  return { docs, replicated: edits === false }
}

/** A replicating client comes back, and sends all of it again. */
export const full = () =>
  new HttpError(429, 'too_many_requests', 'Too many devices wait to be confirmed. Try again later.', {
    headers: { 'Retry-After': String(FULL_S) },
  })

/** The sidecar makes the control database, and brings its design document, when CouchDB is there. */
export function notReady(thrown: unknown): never {
  if (!isCouchError(thrown, 'not_found')) throw thrown
  throw new HttpError(503, 'service_unavailable', 'The control database is not ready. Try again in a moment.', {
    cause: thrown,
    headers: { 'Retry-After': '5' },
  })
}
