import type { Config } from '../config.ts'
import { ConfigError } from '../core/errors.ts'
import type { Couch } from '../couch/client.ts'
import { ddocsFolder } from '../deploy/compile.ts'
import { deployDdocs, type Deployment } from '../deploy/deploy.ts'
import { formatReport } from '../deploy/format-report.ts'
import { controlMachinesFor } from '../devices/machines.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { loadHandlers } from '../load-handlers.ts'
import { resolveDatabases } from '../roster.ts'
import { withCouch } from './connect.ts'
import type { Terminal } from './terminal.ts'

export interface DeployFlags {
  readonly dryRun?: boolean
  readonly ddocs?: string
  readonly database?: string
  readonly target?: string
  readonly removeMachines?: boolean
}

/** The sidecar's own design documents into the followed databases, or a folder of the user's into one. */
export async function deploy(terminal: Terminal, config: Config, flags: DeployFlags): Promise<void> {
  const target = targetFrom(flags.target)
  if ((flags.ddocs === undefined) !== (flags.database === undefined)) {
    throw new ConfigError(['--ddocs and --database: expected both or neither'])
  }
  const handlers = await loadHandlers(config.handlers)
  await withCouch(config, async (couch) => {
    const deployments =
      flags.ddocs !== undefined
        ? [{ database: flags.database!, folder: flags.ddocs, machines: undefined }]
        : await ownDeployments(couch, config, handlers, terminal.signal)
    const { dryRun, removeMachines } = flags
    const createDatabases = flags.ddocs === undefined
    const options = { couch, deployments, dryRun, removeMachines, createDatabases, target }
    terminal.print(formatReport(await deployDdocs({ ...options, signal: terminal.signal })))
  })
}

function targetFrom(text: string | undefined): 'es2017' | 'es5' | undefined {
  if (text === undefined || text === 'es2017' || text === 'es5') return text
  throw new ConfigError([`--target: expected es2017 or es5, got "${text}"`])
}

async function ownDeployments(
  couch: Couch,
  config: Config,
  handlers: LoadedHandlers,
  signal: AbortSignal,
): Promise<Deployment[]> {
  const names = await resolveDatabases(couch, [config.controlDb, ...config.databases], signal)
  const controlMachines = { ...handlers.machines, ...controlMachinesFor(config) }
  return [...names].map((database) =>
    database === config.controlDb
      ? { database, folder: ddocsFolder('control'), machines: controlMachines }
      : { database, folder: ddocsFolder('docstate'), machines: handlers.machines },
  )
}
