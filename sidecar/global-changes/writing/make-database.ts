import type { Couch } from '../../couch/client.ts'
import { done } from '../../couch/schemas.ts'

/** For server admins only, as CouchDB has made it since version 3: names of databases tell who has an account. */
const CLOSED = { admins: { roles: ['_admin'] }, members: { roles: ['_admin'] } }

/** Makes the database that the events are in, if it is not there. Throws `CouchError`. */
export async function makeDatabase(couch: Couch, name: string, signal: AbortSignal): Promise<void> {
  if (!(await couch.db(name).create({ signal }))) return
  await couch.request({ method: 'PUT', db: name, path: '_security', body: CLOSED, signal }, done)
}
