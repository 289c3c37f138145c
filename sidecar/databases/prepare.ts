import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/errors.ts'
import { ddocsFolder, type DatabaseKind } from '../deploy/compile.ts'
import type { Compiler } from '../deploy/compiler.ts'
import { deployDdocs } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/errors.ts'
import { listMismatches } from '../deploy/list-mismatches.ts'
import type { DispatchTable } from '../docstate/assess.ts'
import { DDOC } from '../docstate/finding/pages.ts'

export interface PrepareOptions {
  readonly couch: Couch
  readonly name: string
  readonly kind: DatabaseKind
  /** What is to run there. */
  readonly table: DispatchTable
  /** For all databases one. */
  readonly compiler?: Compiler
  readonly clock: Clock
  readonly log: Logger
}

const AGAIN_MS = 10_000

/**
 * The database's design document, deployed now where there was none; undefined where there is no database (the control
 * database is made). Throws `CouchError`.
 */
export async function prepare(options: PrepareOptions, signal: AbortSignal): Promise<StoredDoc | undefined> {
  const { couch, name, kind, table, compiler, log } = options
  const database = couch.db(name)
  if (kind === 'control' && (await couch.db('_users').create({ signal }))) log.info('made the database _users')
  const id = `_design/${DDOC}`
  const found = await database.find(id, {}, { signal })
  if (found) return found
  const folder = ddocsFolder(kind)
  try {
    const deployments = [{ database: name, folder, machines: table.machines }]
    await deployDdocs({ couch, deployments, createDatabases: kind === 'control', compiler, signal })
    log.info(`the design documents of ${name} are deployed`)
  } catch (thrown) {
    if (thrown instanceof DeployError && thrown.code === 'no_database') return undefined
    if (thrown instanceof DeployError && thrown.code === 'busy') return waitForOther(options, thrown, signal)
    const cause = thrown instanceof DeployError ? thrown.cause : undefined
    if (isCouchError(cause, 'not_found')) return undefined // deleted in this moment
    throw cause instanceof CouchError ? cause : thrown
  }
  return database.find(id, {}, { signal })
}

/** Who deploys there brings it, or lets somebody else do so when that is done. */
async function waitForOther(options: PrepareOptions, { message }: DeployError, signal: AbortSignal) {
  options.log.info(`waiting for another deploy: ${message}`)
  await options.clock.sleep(AGAIN_MS, signal)
  return prepare(options, signal)
}

/** The handlers that the database's own machines know. The others are named and do not start. */
export function matching(
  { table, name, log }: PrepareOptions,
  ddoc: Parameters<typeof listMismatches>[0],
): DispatchTable {
  const registrations = table.registrations.filter((registration) => {
    const faults = listMismatches(ddoc, [registration], table.machines)
    for (const fault of faults) log.error(`${name}: not started: ${fault}`)
    return faults.length === 0
  })
  return registrations.length < table.registrations.length ? { ...table, registrations } : table // one for thousands
}
