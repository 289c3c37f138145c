import type { Logger } from 'pino'
import type { Random } from './core/backoff.ts'
import type { Clock } from './core/clock.ts'
import { within } from './core/within.ts'
import type { Couch } from './couch/client.ts'
import type { StoredDoc } from './couch/documents.ts'
import { CouchError, isCouchError } from './couch/errors.ts'
import { patiently } from './couch/patiently.ts'
import { ddocsFolder } from './deploy/compile.ts'
import { deployDdocs } from './deploy/deploy.ts'
import { DeployError } from './deploy/errors.ts'
import { listMismatches } from './deploy/list-mismatches.ts'
import type { DispatchTable } from './docstate/assess.ts'
import { createEngine, type Engine, type EngineOptions } from './docstate/engine.ts'
import { DDOC } from './docstate/finding/pages.ts'
import type { Sharing } from './workers/sharing.ts'

export interface ServeOptions extends Omit<EngineOptions, 'database' | 'part'> {
  readonly couch: Couch
  readonly name: string
  readonly kind: 'control' | 'docstate'
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly sharing: Sharing
  readonly onEngine: (engine: Engine) => void
}

const AGAIN_MS = 10_000
const WHO_IS_THERE_MS = 3000

/**
 * Looks after one database until the signal aborts: waits until it is there (the control database is made), brings
 * its design document if it has none, and runs the engine with the handlers that match it.
 */
export async function serveDatabase(options: ServeOptions, signal: AbortSignal): Promise<void> {
  const { couch, name, sharing, clock, random, log } = options
  const database = couch.db(name)
  const onTrouble = (error: CouchError, retryInMs: number) =>
    log.warn({ code: error.code, reason: error.message, retryInMs }, 'waiting for CouchDB')

  for (;;) {
    const ask = () => readDdoc(options, signal)
    const there = await patiently(ask, { clock, random, signal, onTrouble })
    if (there) {
      const table = matching(options, there)
      await within(clock, WHO_IS_THERE_MS, sharing.known, signal) // or all workers would reach for all documents
      const part = sharing.of(name)
      const engine = createEngine({ ...options, database, table, part, prepare: (signal) => readDdoc(options, signal) })
      options.onEngine(engine)
      return engine.run(signal)
    }
    log.warn(`there is no database ${name}; it is waited for`)
    await clock.sleep(AGAIN_MS, signal)
  }
}

/** The database's design document, deployed now where there was none; undefined where there is no database. */
async function readDdoc(options: ServeOptions, signal: AbortSignal): Promise<StoredDoc | undefined> {
  const { couch, name, kind, table, log } = options
  const database = couch.db(name)
  if (kind === 'control' && (await couch.db('_users').create({ signal }))) log.info('made the database _users')
  const id = `_design/${DDOC}`
  const found = await database.find(id, {}, { signal })
  if (found) return found
  const folder = ddocsFolder(kind)
  try {
    const deployments = [{ database: name, folder, machines: table.machines }]
    await deployDdocs({ couch, deployments, createDatabases: kind === 'control', signal })
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
async function waitForOther(options: ServeOptions, { message }: DeployError, signal: AbortSignal) {
  options.log.info(`waiting for another deploy: ${message}`)
  await options.clock.sleep(AGAIN_MS, signal)
  return readDdoc(options, signal)
}

/** The handlers that the database's own machines know. The others are named and do not start. */
function matching({ table, name, log }: ServeOptions, ddoc: Parameters<typeof listMismatches>[0]): DispatchTable {
  const registrations = table.registrations.filter((registration) => {
    const faults = listMismatches(ddoc, [registration], table.machines)
    for (const fault of faults) log.error(`${name}: not started: ${fault}`)
    return faults.length === 0
  })
  return { ...table, registrations }
}
