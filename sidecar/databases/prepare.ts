import type { StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { ddocsFolder, type DatabaseKind } from '../deploy/compile.ts'
import type { Compiler } from '../deploy/compiler.ts'
import { deployDdocs } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/deploy-errors.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import type { MatchingOptions } from './matching.ts'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { server } from '../couch/schemas.ts'

export interface PrepareOptions extends MatchingOptions {
  readonly kind: DatabaseKind
  /** Shared by all databases. */
  readonly compiler: Compiler
}

const AGAIN_MS = 10_000

/**
 * Returns the design document of a database, and deploys a missing one. Undefined if the database is missing; the
 * control database is created. Throws `CouchError`.
 */
export async function prepare(options: PrepareOptions, signal: AbortSignal): Promise<StoredDoc | undefined> {
  const { couch, name, kind, table, compiler, log } = options
  const database = couch.db(name)
  if (kind === 'control') {
    if (await couch.db('_users').create({ signal })) log.info('created the database _users')
    await warnOfOpenUsers(couch, log, signal)
  }
  const found = await database.find(DDOC_ID, {}, { signal })
  if (found) return found
  try {
    const deployments = [{ database: name, templates: [{ folder: ddocsFolder(kind), machines: table.machines }] }]
    await deployDdocs({ couch, deployments, createDatabases: kind === 'control', compiler, signal })
    log.info(`the design documents of ${name} are deployed`)
  } catch (thrown) {
    if (thrown instanceof DeployError && thrown.code === 'no_database') return undefined
    if (thrown instanceof DeployError && thrown.code === 'busy') return waitForOther(options, thrown, signal)
    const cause = thrown instanceof DeployError ? thrown.cause : undefined
    if (isCouchError(cause, 'not_found')) return undefined // the database was deleted in the meantime
    throw cause instanceof CouchError ? cause : thrown
  }
  return database.find(DDOC_ID, {}, { signal })
}

/** Waits for another deploy: it adds the design document, or this sidecar deploys it afterwards. */
async function waitForOther(options: PrepareOptions, { message }: DeployError, signal: AbortSignal) {
  options.log.info(`waiting for another deploy: ${message}`)
  await options.clock.sleep(AGAIN_MS, signal)
  return prepare(options, signal)
}

const CLOSED = '{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}'

/**
 * Warns if `_users` is not limited to server admins, which is CouchDB's default. The sidecar trusts no field that users
 * may write in it. The warning names what else the server lets them do. The embedded server is open to all: no warning.
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
    ...(members.length === 0 ? ['anyone may sign up, and users may write their own documents'] : []),
    ...(some.length > 0 ? [`its members may write their own documents: ${some.join(', ')}`] : []),
    ...(chiefs.length > 0 ? [`its admins may give any role to any user: ${chiefs.join(', ')}`] : []),
  ]
}
