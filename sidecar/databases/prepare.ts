import type { StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/errors.ts'
import { ddocsFolder, type DatabaseKind } from '../deploy/compile.ts'
import type { Compiler } from '../deploy/compiler.ts'
import { deployDdocs } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/errors.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import type { MatchingOptions } from './matching.ts'
import { warnOfOpenUsers } from './open-users.ts'

export interface PrepareOptions extends MatchingOptions {
  readonly kind: DatabaseKind
  /** One for all databases. */
  readonly compiler: Compiler
}

const AGAIN_MS = 10_000

/**
 * The database's design document, deployed now where there was none; undefined where there is no database (the control
 * database is made). Throws `CouchError`.
 */
export async function prepare(options: PrepareOptions, signal: AbortSignal): Promise<StoredDoc | undefined> {
  const { couch, name, kind, table, compiler, log } = options
  const database = couch.db(name)
  if (kind === 'control') {
    if (await couch.db('_users').create({ signal })) log.info('made the database _users')
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
    if (isCouchError(cause, 'not_found')) return undefined // deleted in this moment
    throw cause instanceof CouchError ? cause : thrown
  }
  return database.find(DDOC_ID, {}, { signal })
}

/** Who deploys there brings it, or lets somebody else do so when that is done. */
async function waitForOther(options: PrepareOptions, { message }: DeployError, signal: AbortSignal) {
  options.log.info(`waiting for another deploy: ${message}`)
  await options.clock.sleep(AGAIN_MS, signal)
  return prepare(options, signal)
}
