import type { Couch } from './client.ts'

/** As CouchDB has made databases since version 3. */
const CLOSED = { admins: { names: [], roles: ['_admin'] }, members: { names: [], roles: ['_admin'] } }

/**
 * Makes a database for server admins only, if it is not there: with what is in it, or its name, it tells of users. Throws
 * `CouchError`.
 *
 * @returns whether it was made
 */
export async function makeClosedDatabase(
  couch: Couch,
  name: string,
  { shards, signal }: { readonly shards?: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const database = couch.db(name)
  if (!(await database.create({ signal }, shards))) return false
  await database.setSecurity(CLOSED, { signal })
  return true
}
