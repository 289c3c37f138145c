/** The inbox as a database: reads requests as CouchDB does, and makes the answers in CouchDB's words. */
import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Hashing } from '../devices/passwords.ts'
import { HttpError } from '../http/http-errors.ts'
import { isJsonObject, readObject, type JsonObject } from '../http/json-body.ts'
import type { Received } from './inbox.ts'

/** Maximum number of documents in one request. */
export const MAX_DOCS = 20

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

/** Gives a random id to a document without one, as CouchDB does. */
export const withId = (doc: JsonObject): JsonObject => ({
  ...doc,
  _id: doc._id === undefined ? randomUUID().replaceAll('-', '') : doc._id,
})

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

const FULL_S = 60

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

const INFO = {
  db_name: 'inbox',
  doc_count: 0,
  doc_del_count: 0,
  update_seq: '0',
  purge_seq: '0',
  compact_running: false,
  instance_start_time: '0',
}

/** The path without and with a trailing slash: clients use either. */
export const rootOf = (path: string): string[] => [path, `${path}/`]

/**
 * The answers of the inbox as a database, for clients that replicate into it. They are always the same: the inbox has
 * no document, lacks every revision, accepts every checkpoint and keeps none. So each replication begins anew, and
 * repeats earlier documents.
 *
 * @param path of the inbox
 * @param hashing hash parameters of the server, for a device's `credentials`
 */
export function inboxDatabase(path: string, { prf, iterations }: Hashing): Hono {
  const credentials = { password_scheme: 'pbkdf2', ...(prf !== 'sha' && { pbkdf2_prf: prf }), iterations }
  const app = new Hono()
  app.on('GET', rootOf(path), (c) => c.json({ ...INFO, credentials }))
  app.on('PUT', rootOf(path), () => {
    throw new HttpError(412, 'file_exists', 'The database could not be created, the file already exists.')
  })
  app.post(`${path}/_ensure_full_commit`, (c) =>
    c.json({ ok: true, instance_start_time: INFO.instance_start_time }, 201),
  )
  app.post(`${path}/_revs_diff`, async (c) => {
    const requested = Object.entries(await readObject(c))
    if (!requested.every(([, revs]) => isListOfTexts(revs))) {
      throw new HttpError(400, 'bad_request', 'Expected a list of revisions for each id.')
    }
    return c.json(Object.fromEntries(requested.map(([id, missing]) => [id, { missing }])))
  })
  app.get(`${path}/_local/:id`, () => {
    throw new HttpError(404, 'not_found', 'missing')
  })
  app.put(`${path}/_local/:id`, (c) => c.json({ ok: true, id: `_local/${c.req.param('id')}`, rev: '0-1' }, 201))
  return app
}

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
