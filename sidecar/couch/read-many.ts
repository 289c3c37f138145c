import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import type { StoredDoc } from './documents.ts'
import { CouchError, isCouchError } from './couch-errors.ts'
import { compareRevs } from './documents.ts'
import { allDocs, bulkGot, server } from './schemas.ts'

/**
 * Reads documents by id, in the order of the ids, with `_conflicts` if a document has any. Missing and deleted
 * documents are left out. Throws `CouchError`; `garbled` if the answer exceeds the size limit.
 */
export type ReadMany = (database: string, ids: readonly string[], options?: ReadManyOptions) => Promise<StoredDoc[]>

export interface ReadManyOptions extends CallOptions {
  /** Called for each document that the server cannot read; the document is left out. Default: throw. */
  readonly onFailed?: (id: string, reason: string) => void
}

/**
 * Uses `_bulk_get` on CouchDB 3.3 or newer, which reads all documents of a request together. It costs less than half
 * of `_all_docs`. Older CouchDB and other servers get `_all_docs`.
 */
export function createReadMany(couch: Couch): ReadMany {
  let together: boolean | undefined
  let proven = false
  return async (db, ids, { onFailed, ...options } = {}) => {
    const fail = (id: string, reason: string) => {
      if (!onFailed)
        throw new CouchError('server', { request: `reading many documents of ${db}`, reason: `${id}: ${reason}` })
      onFailed(id, reason)
    }
    together ??= await readsTogether(couch, options)
    if (!together) return byKeys(couch, db, ids, fail, options)
    try {
      const docs = await byBulkGet(couch, db, ids, fail, options)
      proven = true
      return docs
    } catch (thrown) {
      if (proven || (!isCouchError(thrown, 'forbidden') && !isCouchError(thrown, 'bad_request'))) throw thrown
      together = false // a proxy in front of CouchDB blocks `_bulk_get`
      return byKeys(couch, db, ids, fail, options)
    }
  }
}

async function readsTogether(couch: Couch, options?: CallOptions): Promise<boolean> {
  try {
    const { couchdb, version } = await couch.request({ ...options }, server)
    const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
    return couchdb !== undefined && (major > 3 || (major === 3 && minor >= 3))
  } catch (thrown) {
    if (thrown instanceof CouchError && thrown.retry !== 'soon') return false // a proxy hides the version
    throw thrown
  }
}

type Fail = (id: string, reason: string) => void

async function byKeys(couch: Couch, db: string, keys: readonly string[], fail: Fail, options: CallOptions) {
  const query = { include_docs: true, conflicts: true }
  const request = { method: 'POST', db, path: '_all_docs', query, body: { keys }, ...options } as const
  const { rows } = await couch.request(request, allDocs)
  return rows.flatMap(({ key, doc, error }) => {
    if (error !== undefined && error !== 'not_found') fail(key, error)
    return doc ? [doc] : []
  })
}

async function byBulkGet(couch: Couch, db: string, ids: readonly string[], fail: Fail, options: CallOptions) {
  const body = { docs: ids.map((id) => ({ id })) }
  const { results } = await couch.request({ method: 'POST', db, path: '_bulk_get', body, ...options }, bulkGot)
  return results.flatMap(({ id, docs }) => {
    const wrong = docs.find(({ error }) => error && error.error !== 'not_found')?.error
    if (wrong) {
      fail(id, wrong.reason)
      return []
    }
    return winnerOf(docs.flatMap(({ ok }) => (ok && !ok._deleted ? [ok] : []))) ?? []
  })
}

/** The leaf that CouchDB shows, with the revisions of the others in `_conflicts`. Expects no deleted leaves. */
export function winnerOf(leaves: readonly StoredDoc[]): StoredDoc | undefined {
  const [winner, ...others] = leaves.toSorted((a, b) => compareRevs(b._rev, a._rev))
  return winner && others.length > 0 ? { ...winner, _conflicts: others.map(({ _rev }) => _rev) } : winner
}
