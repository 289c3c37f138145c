import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { beatId } from './worker-documents.ts'

/**
 * Takes a member's document and heartbeat out of the database. False if it has changed since it was read: it lives, or
 * another worker has removed it. Throws `CouchError`.
 */
export async function removeMember(database: Database, doc: StoredDoc, signal: AbortSignal): Promise<boolean> {
  try {
    await database.remove(doc._id, doc._rev, { signal })
  } catch (thrown) {
    if (isCouchError(thrown, 'conflict') || isCouchError(thrown, 'not_found')) return false
    throw thrown
  }
  await database.remove(beatId(doc._id), '0-1', { signal }).catch((thrown: unknown) => {
    if (!(thrown instanceof CouchError)) throw thrown // a heartbeat without a member says nothing
  })
  return true
}
