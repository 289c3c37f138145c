import { isOpen, isRecord } from '../channels/documents.ts'
import type { Config } from '../config.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Couch } from '../couch/client.ts'
import { readDatabases } from '../couch/survey.ts'
import { patternsOf, resolveDatabases } from '../databases/patterns.ts'
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
    if (ddocs !== undefined) return names.map((database) => ({ database, templates: [{ folder: ddocs }] }))
    const tables = tablesFor(couch, config, handlers)
    const own = names.map((database) => {
      const { kind, table } = tables.of(database)
      return { database, templates: [{ folder: ddocsFolder(kind), machines: table.machines }] }
    })
    return pattern === undefined ? together([...own, ...(await ofChannels(couch, config, signal))]) : own
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

/** The templates of channels, into those that are open. One whose database is gone has none: a deploy makes no channel. */
async function ofChannels(couch: Couch, { controlDb, channelDdocs }: Config, signal: AbortSignal) {
  const docs = await inControl(couch.db(controlDb), signal)
  const templates = [ddocsFolder('channel'), ...channelDdocs].map((folder) => ({ folder }))
  const names = docs
    .filter(isRecord)
    .filter(isOpen)
    .map(({ database }) => database)
  const there: string[] = []
  for await (const some of readDatabases(couch, names, signal)) there.push(...some.keys())
  return there.map((database) => ({ database, templates }))
}

/** A channel may be among the databases that are followed: each database once. */
function together(deployments: readonly Deployment[]): Deployment[] {
  const byDatabase = new Map<string, Deployment>()
  for (const { database, templates } of deployments) {
    byDatabase.set(database, { database, templates: [...(byDatabase.get(database)?.templates ?? []), ...templates] })
  }
  return [...byDatabase.values()]
}
