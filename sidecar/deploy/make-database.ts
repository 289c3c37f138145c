import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../ddocs/lib/document.ts'
import type { CallOptions, Database, Security } from '../couch/database.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Compiler, Template } from './compiler.ts'
import { deployDdocs } from './deploy.ts'

export interface MakeOptions {
  readonly couch: Couch
  readonly compiler: Compiler
  /** `q` of the database. */
  readonly shards: number
}

export interface WantedDatabase {
  readonly name: string
  /** Users with this role, and server admins, may read and write documents there. */
  readonly role: string
  readonly templates: readonly Template[]
}

/**
 * Makes a database as it is wanted, or what is missing of it: it may be there already, or half of it. Closed to others
 * before anything is in it. Throws `CouchError`, `DeployError`.
 */
export async function makeDatabase(
  { couch, compiler, shards }: MakeOptions,
  { name, role, templates }: WantedDatabase,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  const database = couch.db(name)
  await database.create(options, shards)
  await secure(database, securityFor(role), options)
  const deployments = [{ database: name, templates }]
  await deployDdocs({ couch, compiler, deployments, createDatabases: false, signal: options.signal })
}

/** Whether it is there, and open to users of the role: not so if making it was interrupted. */
export async function isMadeFor(database: Database, role: string, options: CallOptions): Promise<boolean> {
  try {
    const security = await database.security(options)
    const members = isObject(security) && isObject(security.members) ? security.members.roles : undefined
    return Array.isArray(members) && members.includes(role)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return false
    throw thrown
  }
}

/** From now on it is for server admins alone. A database that is not there is fine. */
export const closeDatabase = (database: Database, options: CallOptions): Promise<void> =>
  secure(database, securityFor('_admin'), options)

/** Never without members: that would let everyone in. Design documents and this object are for server admins. */
const securityFor = (role: string): Security => ({
  admins: { names: [], roles: ['_admin'] },
  members: { names: [], roles: [role] },
})

async function secure(database: Database, security: Security, options: CallOptions): Promise<void> {
  if (!isDeepStrictEqual(await database.security(options), security)) await database.setSecurity(security, options)
}
