/** Reads documents for the inbox, and makes the answer for each in CouchDB's words. */
import { randomUUID } from 'node:crypto'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Received } from './inbox.ts'
import { HttpError } from '../http/http-errors.ts'
import { isJsonObject, type JsonObject } from '../http/json-body.ts'

/** Maximum number of documents in one request. */
export const MAX_DOCS = 20
const FULL_S = 60

export type Row =
  | { readonly ok: true; readonly id: unknown; readonly rev: string }
  | { readonly id: unknown; readonly error: 'forbidden' | 'conflict'; readonly reason: string }

/** The answer for one document; undefined if the inbox is full: the client must send the document again. */
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

/** Gives a random id to a document without one, as CouchDB does. */
export const withId = (doc: JsonObject): JsonObject => ({
  ...doc,
  _id: doc._id === undefined ? randomUUID().replaceAll('-', '') : doc._id,
})

/** Reads the body of `_bulk_docs`. Throws `HttpError`. */
export function docsFrom({ docs, new_edits: edits }: JsonObject) {
  if (!Array.isArray(docs)) throw new HttpError(400, 'bad_request', 'POST body must include `docs` parameter.')
  if (!docs.every(isJsonObject)) throw new HttpError(400, 'bad_request', 'Document must be a JSON object')
  if (docs.length > MAX_DOCS) {
    const reason = `Expected ${MAX_DOCS} documents at most, got ${docs.length}; send them in smaller batches.`
    throw new HttpError(413, 'max_bulk_docs_count_exceeded', reason)
  }
  return { docs, replicated: edits === false }
}

/** The error of a full inbox. A replicating client comes back, and sends all documents again. */
export const full = () =>
  new HttpError(429, 'too_many_requests', 'Too many devices wait to be confirmed. Try again later.', {
    headers: { 'Retry-After': String(FULL_S) },
  })

/** Answers 503 without a control database: the sidecar makes it, with its design document, once CouchDB answers. */
export function notReady(thrown: unknown): never {
  if (!isCouchError(thrown, 'not_found')) throw thrown
  throw new HttpError(503, 'service_unavailable', 'The control database is not ready. Try again in a moment.', {
    cause: thrown,
    headers: { 'Retry-After': '5' },
  })
}
