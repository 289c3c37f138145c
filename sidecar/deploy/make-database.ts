import { isDeepStrictEqual } from 'node:util'
import type { Machines } from '../../ddocs/machine.ts'
import type { CallOptions, Database, Security } from '../couch/database.ts'
import type { Couch } from '../couch/client.ts'
import type { Compiler } from './compiler.ts'
import { deployDdocs } from './deploy.ts'

export interface WantedDatabase {
  readonly name: string
  /** Who has it may read and write documents there, and nobody else but server admins. */
  readonly role: string
  /** Of design documents, each with the machines for its `docstate`. */
  readonly templates: readonly { readonly folder: string; readonly machines?: Machines | undefined }[]
}

/**
 * Makes a database as it is wanted, or what is missing of it: it may be there already, or half of it. Closed to others
 * before anything is in it. Throws `CouchError`, `DeployError`.
 */
export async function makeDatabase(
  { couch, compiler }: { readonly couch: Couch; readonly compiler: Compiler },
  { name, role, templates }: WantedDatabase,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  const database = couch.db(name)
  await database.create(options)
  await secure(database, securityFor(role), options)
  for (const template of templates) {
    const deployments = [{ database: name, ...template }]
    await deployDdocs({ couch, compiler, deployments, createDatabases: false, signal: options.signal })
  }
}

/** From now on it is for server admins alone. A database that is not there is fine. */
export const closeDatabase = (database: Database, options: CallOptions): Promise<void> =>
  secure(database, securityFor('_admin'), options)

/** Never without members: that would be everybody. Design documents and this object are for server admins. */
const securityFor = (role: string): Security => ({
  admins: { names: [], roles: ['_admin'] },
  members: { names: [], roles: [role] },
})

async function secure(database: Database, security: Security, options: CallOptions): Promise<void> {
  if (!isDeepStrictEqual(await database.security(options), security)) await database.setSecurity(security, options)
}
