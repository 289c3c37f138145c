import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { readLocalDocs } from '../couch/local.ts'
import { beatId, isMember, memberFrom, roleOf, TYPE, type Member } from './worker-documents.ts'

/** A registered worker of any role. */
export interface Listed extends Member {
  readonly role: string
  /** Time of its last heartbeat, ISO 8601, by its own clock; undefined if none. */
  readonly seenAt: string | undefined
}

/** All registered workers, ordered by role and id; none if the control database is missing. Throws `CouchError`. */
export async function listWorkers(database: Database, signal: AbortSignal): Promise<Listed[]> {
  const found = await database.withPrefix(`${TYPE}:`, { signal }).catch(noneIfMissing)
  const docs = found.filter(isMember)
  const ids = docs.map(({ _id }) => beatId(_id))
  const beats = await readLocalDocs(database, ids, signal)
  return docs.map((doc) => {
    const at = beats.get(beatId(doc._id))?.at
    return { role: roleOf(doc), ...memberFrom(doc), seenAt: typeof at === 'string' ? at : undefined }
  })
}

function noneIfMissing(thrown: unknown): StoredDoc[] {
  if (isCouchError(thrown, 'not_found')) return []
  throw thrown
}
