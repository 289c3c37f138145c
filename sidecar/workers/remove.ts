import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { beatId } from './worker-documents.ts'

/**
 * Deletes a member's document and heartbeat. False if the document has changed since it was read: the member is alive,
 * or another worker has removed it. Throws `CouchError`.
 */
export async function removeMember(database: Database, doc: StoredDoc, signal: AbortSignal): Promise<boolean> {
  try {
    await database.remove(doc._id, doc._rev, { signal })
  } catch (thrown) {
    if (isCouchError(thrown, 'conflict') || isCouchError(thrown, 'not_found')) return false
    throw thrown
  }
  await database.remove(beatId(doc._id), '0-1', { signal }).catch((thrown: unknown) => {
    if (!(thrown instanceof CouchError)) throw thrown // a heartbeat without a member has no effect
  })
  return true
}
