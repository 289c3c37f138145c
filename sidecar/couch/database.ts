import type { Content, Couch, CouchRequest } from './client.ts'
import { CouchError, isCouchError } from './couch-errors.ts'
import type { ReadMany, ReadManyOptions } from './read-many.ts'
import type { Sign } from './signature.ts'
import type { BulkRow, ChangesPage, DbInfo, Doc, Leaf, Seq, StoredDoc } from './documents.ts'
import {
  allDocs,
  bulkRows,
  changesPage,
  dbInfo,
  done,
  leaves,
  rowsOf,
  stored,
  storedDoc,
  type Schema,
} from './schemas.ts'
import { writtenFrom } from './written.ts'
import { segment } from './path.ts'
import { isBehindCheckpoint } from './shard-seqs.ts'

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
  /** See `CouchRequest`. */
  readonly beginsWithinMs?: number
  /** See `CouchRequest`. */
  readonly first?: boolean
  /** See `CouchRequest`. */
  readonly onSent?: () => void
}

export interface ViewQuery {
  readonly startkey?: unknown
  readonly endkey?: unknown
  readonly startkey_docid?: string
  /** Number of rows to skip at the start. */
  readonly skip?: number
  readonly limit?: number
  readonly reduce?: boolean
  readonly group_level?: number
}

/** `_security`: the permissions of users in a database. Empty `members` let every user in. */
export interface Security {
  readonly admins: { readonly names: readonly string[]; readonly roles: readonly string[] }
  readonly members: { readonly names: readonly string[]; readonly roles: readonly string[] }
}

export interface Life {
  /** `instance_start_time`: a different value means a different database of the same name. */
  readonly life: string
  /** An older copy of some or all of its files was restored. */
  readonly isBehind: boolean
  /** Copies of each document. */
  readonly copies: number
}

/** An attachment, as CouchDB sends it. */
export interface Download {
  /** MIME type. */
  readonly type: string
  /** A stream: read it to its end, or abort the signal. Reading throws `CouchError`. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** One database. Every method throws `CouchError`, or the signal's reason. */
export interface Database {
  readonly name: string
  info(options?: CallOptions): Promise<DbInfo>
  /** The current life of the database, and whether it has lost changes from before `place` (`shard-seqs.ts`). */
  life(place: Seq | undefined, options?: CallOptions): Promise<Life>
  /** Creates the database with `shards` shards (default: the server's). True if created now, false if it exists. */
  create(options?: CallOptions, shards?: number): Promise<boolean>
  /** Deletes the database. True if deleted now, false if it was missing. */
  drop(options?: CallOptions): Promise<boolean>
  /** Reads `_security` unchecked: an admin may have written any value. */
  security(options?: CallOptions): Promise<unknown>
  /** Overwrites `_security`, which has no revisions: the last write wins. */
  setSecurity(security: Security, options?: CallOptions): Promise<void>
  /** Reads a document. `T` states the fields that the caller expects. */
  get<T = StoredDoc>(id: string, query?: Record<string, string | number | boolean>, options?: CallOptions): Promise<T>
  /** Like `get`, but returns `undefined` for a missing or deleted document. */
  find(
    id: string,
    query?: Record<string, string | number | boolean>,
    options?: CallOptions,
  ): Promise<StoredDoc | undefined>
  /** All leaf revisions, including deleted ones, from every copy that the cluster can reach now. */
  leaves(id: string, options?: CallOptions): Promise<Leaf[]>
  /** See `ReadMany`. */
  getMany(ids: readonly string[], options?: ReadManyOptions): Promise<StoredDoc[]>
  /** Documents whose ids start with the prefix, in the order of their ids, at most `limit`. */
  withPrefix(prefix: string, options?: CallOptions, limit?: number): Promise<StoredDoc[]>
  /** Ids that start with the prefix, in order, a thousand at a time. */
  idsWithPrefix(prefix: string, options?: CallOptions): AsyncGenerator<readonly string[]>
  /** Reads `_local` documents; missing ones are left out. Not every server supports this (`local.ts`). */
  locals(ids: readonly string[], options?: CallOptions): Promise<Doc[]>
  /** Writes one document and returns its new revision. Prefer the writer for many documents. */
  put(doc: Doc, options?: CallOptions): Promise<string>
  /** `_bulk_docs` with documents as JSON text: one document that cannot be serialized must not fail the others. */
  bulk(docs: readonly string[], options?: CallOptions): Promise<BulkRow[]>
  /**
   * Writes leaves as replication does: unchanged, beside existing leaves. Every copy of a cluster takes all of them
   * at once. Leaves that CouchDB refuses (`validate_doc_update`) are dropped silently. Transient errors throw.
   */
  merge(leaves: readonly Leaf[], options?: CallOptions): Promise<void>
  remove(id: string, rev: string, options?: CallOptions): Promise<void>
  /** Reads an attachment; `undefined` if the document or the attachment is missing. */
  attachment(id: string, name: string, signal: AbortSignal): Promise<Download | undefined>
  /** Stores an attachment on this revision of the document. Returns the new revision. */
  attach(doc: StoredDoc, name: string, content: Content, options?: CallOptions): Promise<string>
  /** @param row schema of one row */
  view<Row>(ddoc: string, view: string, row: Schema<Row>, query?: ViewQuery, options?: CallOptions): Promise<Row[]>
  /** One page of `_changes`. A selector keeps only matching documents; not every server supports it. */
  changesPage(
    query: Record<string, string | number | boolean>,
    options?: CallOptions,
    selector?: object,
  ): Promise<ChangesPage>
  /** The bytes of a continuous `_changes` feed. */
  changes(query: Record<string, string | number | boolean>, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** Another database of the same server. */
  beside(name: string): Database
  /** Signs data that the sidecar stores here: others may overwrite it. Include the database name in the text. */
  readonly sign: Sign
}

/** A read quorum above the number of copies: the cluster waits for every copy. */
const MORE_THAN_COPIES = 100
const ID_PAGE = 1000
/** For requests that CouchDB answers at once. See `CouchRequest`. */
const SOON = { beginsWithinMs: 10_000 }

/** Encodes an id, except the slash of `_design/` and `_local/`. */
const docPath = (id: string) => {
  const prefix = /^(_design|_local)\//.exec(id)?.[0] ?? ''
  return prefix + segment(id.slice(prefix.length))
}

/** Attachment names keep their slashes, as in CouchDB. */
const attachmentPath = (id: string, name: string) => `${docPath(id)}/${name.split('/').map(segment).join('/')}`
/** MIME type of bytes without a declared type. */
export const ANY_TYPE = 'application/octet-stream'

/** CouchDB sends `not_found` with every 404 of a database. A 404 without it comes from a proxy and proves nothing. */
function provenMissing(missing: CouchError): CouchError {
  if (missing.error === 'not_found') return missing
  const { request, status, reason } = missing
  const cause = { cause: missing }
  return new CouchError(
    'garbled',
    { request, ...(status && { status }), reason: `${reason}, not in CouchDB's words` },
    cause,
  )
}

export function createDatabase(couch: Couch, name: string, readMany: ReadMany, first = false): Database {
  async function call<T>(schema: Schema<T>, request: CouchRequest, options?: CallOptions): Promise<T> {
    try {
      return await couch.request({ db: name, first, ...request, ...options }, schema)
    } catch (thrown) {
      throw isCouchError(thrown, 'not_found') ? provenMissing(thrown) : thrown
    }
  }

  const database: Database = {
    name,
    info: (options) => call(dbInfo, SOON, options),
    async life(place, options) {
      const info = await database.info(options)
      const isBehind = place !== undefined && (await isBehindCheckpoint(couch, info, place, options))
      return { life: info.instance_start_time, isBehind, copies: info.cluster?.n ?? 1 }
    },
    async create(options, shards) {
      try {
        await call(done, { method: 'PUT', ...(shards !== undefined && { query: { q: shards } }) }, options)
        return true
      } catch (thrown) {
        if (isCouchError(thrown, 'exists')) return false
        throw thrown
      }
    },
    async drop(options) {
      try {
        await call(done, { method: 'DELETE' }, options)
        return true
      } catch (thrown) {
        if (isCouchError(thrown, 'not_found')) return false
        throw thrown
      }
    },
    security: (options) => couch.request({ db: name, first, path: '_security', ...SOON, ...options }),
    async setSecurity(security, options) {
      await call(done, { method: 'PUT', path: '_security', body: security }, options)
    },
    async get<T>(id: string, query?: CouchRequest['query'], options?: CallOptions) {
      return (await call(storedDoc, { ...SOON, path: docPath(id), ...(query && { query }) }, options)) as T
    },
    async find(id, query, options) {
      try {
        return await database.get(id, query, options)
      } catch (thrown) {
        if (isCouchError(thrown, 'not_found')) return undefined
        throw thrown
      }
    },
    async leaves(id, options) {
      const query = { open_revs: 'all', revs: true, r: MORE_THAN_COPIES }
      try {
        const rows = await call(leaves, { ...SOON, path: docPath(id), query }, options)
        return rows.flatMap(({ ok }) => (ok ? [ok] : []))
      } catch (thrown) {
        if (isCouchError(thrown, 'not_found')) return []
        throw thrown
      }
    },
    getMany: (ids, options) => readMany(name, ids, { first, ...options }),
    async withPrefix(prefix, options, limit) {
      const range = { startkey: prefix, endkey: `${prefix}\u{10ffff}`, include_docs: true }
      const query = { ...range, ...(limit !== undefined && { limit }) }
      const { rows } = await call(allDocs, { path: '_all_docs', query }, options)
      return rows.flatMap((row) => (row.doc ? [row.doc] : []))
    },
    async *idsWithPrefix(prefix, options) {
      for (let startkey = prefix; ;) {
        const query = { startkey, endkey: `${prefix}\u{10ffff}`, limit: ID_PAGE }
        const { rows } = await call(allDocs, { path: '_all_docs', query }, options)
        const ids = rows.map(({ key }) => key)
        yield ids
        if (ids.length < ID_PAGE) return
        startkey = `${ids.at(-1)!}\u0000`
      }
    },
    async locals(ids, options) {
      const request = {
        ...SOON,
        method: 'POST',
        path: '_local_docs',
        query: { include_docs: true },
        body: { keys: ids },
      } as const
      const { rows } = await call(allDocs, request, options)
      return rows.flatMap((row) => (row.doc ? [row.doc] : []))
    },
    async put(doc, options) {
      const { rev } = await call(stored, { method: 'PUT', path: docPath(doc._id), body: doc }, options)
      return rev
    },
    bulk: (docs, options) =>
      call(bulkRows, { method: 'POST', path: '_bulk_docs', json: `{"docs":[${docs.join()}]}` }, options),
    async merge(docs, options) {
      const request = { method: 'POST', path: '_bulk_docs', body: { docs, new_edits: false } } as const
      for (const row of await call(bulkRows, request, options)) writtenFrom(row) // CouchDB lists only failed leaves
    },
    async remove(id, rev, options) {
      await call(done, { method: 'DELETE', path: docPath(id), query: { rev } }, options)
    },
    async attachment(id, attachmentName, signal) {
      try {
        const { headers, bytes } = await couch.stream({ db: name, path: attachmentPath(id, attachmentName), signal })
        return { type: String(headers['content-type'] ?? ANY_TYPE), bytes }
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        const missing = provenMissing(thrown)
        if (missing !== thrown) throw missing
        return undefined
      }
    },
    async attach({ _id, _rev }, attachmentName, content, options) {
      const request = {
        method: 'PUT',
        path: attachmentPath(_id, attachmentName),
        query: { rev: _rev },
        content,
      } as const
      const { rev } = await call(stored, { ...request, waits: true }, options)
      return rev
    },
    async view(ddoc, view, row, query = {}, options) {
      const path = `_design/${segment(ddoc)}/_view/${segment(view)}`
      const request = { path, query: query as Record<string, string | number | boolean> }
      const { rows } = await call(rowsOf(row), request, options)
      return rows
    },
    changesPage(query, options, selector) {
      const filtered = { method: 'POST', query: { ...query, filter: '_selector' }, body: { selector } } as const
      return call(changesPage, { path: '_changes', query, ...(selector ? filtered : SOON) }, options)
    },
    async changes(query, signal) {
      return (await couch.stream({ db: name, path: '_changes', query, signal })).bytes
    },
    beside: (other) => couch.db(other, first),
    sign: couch.sign,
  }
  return database
}
