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
  /** Number of shards: CouchDB's `q`. */
  readonly shards: number
}

export interface WantedDatabase {
  readonly name: string
  /** Users with this role, and server admins, may read and write documents in the database. */
  readonly role: string
  readonly templates: readonly Template[]
}

/**
 * Creates a database, or completes one that was created in part. It restricts access before it writes documents.
 * Throws `CouchError`, `DeployError`.
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

/** Whether the database exists and is open to the role. False if its creation was interrupted. */
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

/** Restricts a database to server admins. Throws `CouchError`: `not_found` if the database is missing. */
export const closeDatabase = (database: Database, options: CallOptions): Promise<void> =>
  secure(database, securityFor('_admin'), options)

/** Has members, because empty ones let every user in. Design documents and `_security` are for server admins only. */
const securityFor = (role: string): Security => ({
  admins: { names: [], roles: ['_admin'] },
  members: { names: [], roles: [role] },
})

async function secure(database: Database, security: Security, options: CallOptions): Promise<void> {
  if (!isDeepStrictEqual(await database.security(options), security)) await database.setSecurity(security, options)
}
