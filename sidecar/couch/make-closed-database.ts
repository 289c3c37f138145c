import type { Couch } from './client.ts'

/** The default `_security` since CouchDB 3. */
const CLOSED = { admins: { names: [], roles: ['_admin'] }, members: { names: [], roles: ['_admin'] } }

/**
 * Creates a database for server admins only, if it is missing. Its content or its name reveals facts about users.
 * Throws `CouchError`.
 *
 * @returns whether the database was created
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
