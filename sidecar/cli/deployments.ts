import { isOpen, isRecord } from '../channels/documents.ts'
import type { Config } from '../config.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Couch } from '../couch/client.ts'
import { patternsOf, resolveDatabases } from '../databases/roster.ts'
import { ddocsFolder } from '../deploy/compile.ts'
import type { Deployment } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/errors.ts'
import { explainFailure } from '../deploy/explain-failure.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { tablesFor } from './tables-for.ts'

export interface DeploymentsOptions {
  readonly couch: Couch
  readonly config: Config
  readonly handlers: LoadedHandlers
  /** A folder of the user's own. */
  readonly ddocs?: string
  /** A name or a glob. */
  readonly database?: string
}

/** What is to be deployed where. Throws `DeployError`, `ConfigError`. */
export async function deploymentsFor(options: DeploymentsOptions, signal: AbortSignal): Promise<Deployment[]> {
  const { couch, config, handlers, ddocs, database: pattern } = options
  try {
    const names = [...(await resolveDatabases(couch, pattern === undefined ? patternsOf(config) : [pattern], signal))]
    if (names.length === 0) throw new DeployError('no_database', [`${couch.url} has no database ${pattern}`])
    if (ddocs !== undefined) return names.map((database) => ({ database, folder: ddocs }))
    const tables = tablesFor(couch, config, handlers)
    const deployments = names.map((database) => {
      const { kind, table } = tables.of(database)
      return { database, folder: ddocsFolder(kind), machines: table.machines }
    })
    return pattern === undefined ? [...deployments, ...(await ofChannels(couch, config, signal))] : deployments
  } catch (thrown) {
    throw explainFailure(thrown, couch.url, [])
  }
}

async function inControl(control: Database, signal: AbortSignal): Promise<StoredDoc[]> {
  try {
    return await control.withPrefix('channel:', { signal })
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return [] // the deploy makes it
    throw thrown
  }
}

/** The templates of channels, into those that are open. */
async function ofChannels(couch: Couch, { controlDb, channelDdocs }: Config, signal: AbortSignal) {
  const docs = await inControl(couch.db(controlDb), signal)
  const folders = [ddocsFolder('channel'), ...channelDdocs]
  const open = docs.filter(isRecord).filter(isOpen)
  return open.flatMap(({ database }) => folders.map((folder) => ({ database, folder })))
}
