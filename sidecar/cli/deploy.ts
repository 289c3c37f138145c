import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { ConfigError } from '../core/errors.ts'
import { deployDdocs, type Deployment } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/deploy-errors.ts'
import { formatDatabases, formatReport } from '../deploy/format-report.ts'
import { rollBack } from '../deploy/roll-back.ts'
import { listDoubts } from '../docstate/check-machines.ts'
import { loadHandlers } from './load-handlers.ts'
import { withCouch } from './connect.ts'
import { showProgress } from './show-progress.ts'
import type { Terminal } from './terminal.ts'
import { isOpen, isRecord } from '../channels/channel-documents.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Couch } from '../couch/client.ts'
import { readDatabases } from '../couch/survey.ts'
import { patternsOf, resolveDatabases } from '../databases/patterns.ts'
import { ddocsFolder } from '../deploy/compile.ts'
import { explainFailure } from '../deploy/explain-failure.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { tablesFor } from './tables-for.ts'

export interface DeployFlags {
  readonly dryRun?: boolean
  readonly ddocs?: string
  /** A name or a glob. */
  readonly database?: string
  readonly target?: string
  readonly removeMachines?: boolean
  readonly prune?: boolean
  readonly rollback?: boolean
  readonly takeOver?: boolean
  readonly diskCheck: boolean
}

/** Deploys the sidecar's design documents to the followed databases, or a user's folder to the selected databases. */
export async function deploy(terminal: Terminal, config: Config, flags: DeployFlags): Promise<void> {
  const target = targetFrom(flags.target)
  refuseUnfit(flags)
  const handlers = await loadHandlers(config.handlers)
  for (const doubt of listDoubts(handlers)) terminal.note(doubt)
  const { signal } = terminal
  await withCouch(config, async (couch) => {
    const deployments = await deploymentsFor({ couch, config, handlers, ...flags }, signal)
    const progress = showProgress(terminal, systemClock)
    const { takeOver = false } = flags
    const common = { couch, takeOver, onProgress: progress.show, signal }
    const { dryRun, removeMachines, prune, diskCheck: checkDisk } = flags
    const options = { deployments, dryRun, removeMachines, prune, checkDisk, target }
    try {
      const createDatabases = flags.ddocs === undefined
      const report = flags.rollback
        ? formatDatabases(await rollBack({ ...common, databases: deployments.map(({ database }) => database) }))
        : formatReport(await deployDdocs({ ...common, ...options, createDatabases }))
      progress.end()
      terminal.print(report)
    } catch (thrown) {
      progress.end()
      if (thrown instanceof DeployError && thrown.reports.length > 1) terminal.print(formatDatabases(thrown.reports))
      throw thrown
    }
  })
}

function targetFrom(text: string | undefined): 'es2017' | 'es5' | undefined {
  if (text === undefined || text === 'es2017' || text === 'es5') return text
  throw new ConfigError([`--target: expected es2017 or es5, got "${text}"`])
}

function refuseUnfit({ rollback, database, ddocs, target, diskCheck, ...flags }: DeployFlags): void {
  const { prune, dryRun, removeMachines } = flags
  if (database === '') throw new ConfigError(['--database: expected a name or a glob, got nothing'])
  if (rollback) {
    const isAlone = !(prune || dryRun || removeMachines) && diskCheck
    if (isAlone && ddocs === undefined && target === undefined) return
    throw new ConfigError(['--rollback: expected no other flag but --database and --take-over'])
  }
  if ((ddocs === undefined) !== (database === undefined)) {
    throw new ConfigError(['--ddocs and --database: expected both or neither'])
  }
  if (prune && ddocs === undefined) {
    throw new ConfigError([
      "--prune: expected --ddocs: what a folder of yours does not have is removed, the sidecar's stay",
    ])
  }
}

interface DeploymentsOptions {
  readonly couch: Couch
  readonly config: Config
  readonly handlers: LoadedHandlers
  /** A folder of the user's own. */
  readonly ddocs?: string
  /** A name or a glob. */
  readonly database?: string
}

/** Lists what to deploy to which database. Throws `DeployError`, `ConfigError`. */
async function deploymentsFor(options: DeploymentsOptions, signal: AbortSignal): Promise<Deployment[]> {
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
    if (isCouchError(thrown, 'not_found')) return [] // the deploy creates it
    throw thrown
  }
}

/** Deploys templates to open channels. A channel whose database is gone gets none: a deploy creates no channel. */
async function ofChannels(couch: Couch, { controlDb, channelDdocs }: Config, signal: AbortSignal) {
  const docs = await inControl(couch.db(controlDb), signal)
  const templates = [ddocsFolder('channel'), ...channelDdocs].map((folder) => ({ folder }))
  const names = docs
    .filter(isRecord)
    .filter(isOpen)
    .map(({ database }) => database)
  const existing: string[] = []
  for await (const some of readDatabases(couch, names, signal)) existing.push(...some.keys())
  return existing.map((database) => ({ database, templates }))
}

/** Merges the deployments of each database: a channel may also be a followed database. */
function together(deployments: readonly Deployment[]): Deployment[] {
  const byDatabase = new Map<string, Deployment>()
  for (const { database, templates } of deployments) {
    byDatabase.set(database, { database, templates: [...(byDatabase.get(database)?.templates ?? []), ...templates] })
  }
  return [...byDatabase.values()]
}
