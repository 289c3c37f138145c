import type { Logger } from 'pino'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { server } from '../couch/schemas.ts'

const CLOSED = '{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}'

/**
 * Warns where `_users` is not for server admins alone, as CouchDB makes it. The sidecar believes no field there that a
 * user may write; but what else the server lets them do is said. Not of the embedded server, which is open to all.
 */
export async function warnOfOpenUsers(couch: Couch, log: Logger, signal: AbortSignal): Promise<void> {
  const { couchdb } = await couch.request({ signal }, server)
  if (couchdb === undefined) return
  const reasons = openingsOf(security.parse(await couch.db('_users').security({ signal })))
  if (reasons.length === 0) return
  log.warn({ reasons }, `_users is open to others than server admins; expected its _security to be ${CLOSED}`)
}

const listed = z
  .object({ names: z.array(z.unknown()).catch([]), roles: z.array(z.unknown()).catch([]) })
  .transform(({ names, roles }) => [...names, ...roles])
  .catch([])
const security = z.object({ members: listed, admins: listed }).catch({ members: [], admins: [] })

function openingsOf({ members, admins }: z.infer<typeof security>): string[] {
  const others = (listed: readonly unknown[]) => listed.filter((one) => one !== '_admin').map(String)
  const [some, chiefs] = [others(members), others(admins)]
  return [
    ...(members.length === 0 ? ['anybody may sign up, and users may write their own documents'] : []),
    ...(some.length > 0 ? [`its members may write their own documents: ${some.join(', ')}`] : []),
    ...(chiefs.length > 0 ? [`its admins may give any role to any user: ${chiefs.join(', ')}`] : []),
  ]
}
