import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { ConfigError } from '../core/errors.ts'
import { deployDdocs } from '../deploy/deploy.ts'
import { DeployError } from '../deploy/errors.ts'
import { formatDatabases, formatReport } from '../deploy/format-report.ts'
import { rollBack } from '../deploy/roll-back.ts'
import { listDoubts } from '../docstate/check-machines.ts'
import { loadHandlers } from '../load-handlers.ts'
import { withCouch } from './connect.ts'
import { deploymentsFor } from './deployments.ts'
import { showProgress } from './show-progress.ts'
import type { Terminal } from './terminal.ts'

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

/** The sidecar's own design documents into the followed databases, or a folder of the user's into those it is for. */
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
