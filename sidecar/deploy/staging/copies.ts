import type { Couch } from '../../couch/client.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { done } from '../../couch/schemas.ts'
import { isCopy, OWN_PREFIX, sameIndex } from './copy.ts'

export async function putCopy(database: Database, copy: Doc, signal?: AbortSignal): Promise<void> {
  const current = await database.find(copy._id, {}, { signal })
  if (current && sameIndex(current, copy)) return
  await database.put({ ...copy, ...(current && { _rev: current._rev }) }, { signal })
}

/** Removes the copies of a run, except those in `stay`. True if any were removed. */
export async function removeCopies(
  database: Database,
  stay: readonly string[],
  signal?: AbortSignal,
): Promise<boolean> {
  const own = await database.withPrefix(OWN_PREFIX, { signal })
  const gone = own.filter(({ _id }) => isCopy(_id) && !stay.includes(_id))
  for (const { _id, _rev } of gone) await database.remove(_id, _rev, { signal })
  return gone.length > 0
}

/** Removes index files without a design document. A copy that stays is a design document, so its index stays, too. */
export const removeIndexFiles = (couch: Couch, { name }: Database, signal?: AbortSignal): Promise<unknown> =>
  couch.request({ method: 'POST', db: name, path: '_view_cleanup', body: {}, signal }, done)
