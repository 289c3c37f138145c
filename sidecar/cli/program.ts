import { Command, Option, CommanderError } from 'commander'
import type { Config } from '../config.ts'
import type { CanaryFlags } from './canary.ts'
import type { DeployFlags } from './deploy.ts'
import type { ActFlags } from './act.ts'
import { FILTER_FLAGS } from './filter-flags.ts'
import type { ListFlags } from './list.ts'
import type { SetFlags } from './pause.ts'
import type { StatusFlags } from './status.ts'
import type { Terminal } from './terminal.ts'
import { inspect } from 'node:util'
import { ConfigError, SidecarError } from '../core/errors.ts'
import { withPrintable } from './printable.ts'

/**
 * Creates the command line. Commands throw; `run` returns an exit code. Commands and settings are loaded on use, so
 * that `version` and `--help` are fast.
 */
export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command('couchdb-sidecar')
    .description('A process beside CouchDB that makes documents do things.')
    .version(version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(withoutEnd(text)),
      writeErr: (text) => terminal.note(withoutEnd(text)),
    })
    .showHelpAfterError('(couchdb-sidecar --help lists the commands)')
    .enablePositionalOptions()
    .helpCommand(false)
    .hook('preSubcommand', (_, command) => (withSettings.has(command) ? addSettings(command) : undefined))

  const withSettings = new Set<Command>()
  const add = (name: string, description: string) => {
    const command = program.command(name).description(description).exitOverride()
    withSettings.add(command)
    return command
  }

  program
    .command('init')
    .description('write a small project with handlers of your own into a new folder')
    .argument('<folder>', 'where')
    .exitOverride()
    .action(async (folder: string) => {
      const { init } = await import('./init.ts')
      await init(terminal, folder, version)
    })

  add('dev', 'run your handlers, and load them again when a file is saved').action(async (_, command: Command) => {
    const [config, flags] = [await readConfig(command, terminal), await readFlags(command)]
    const { dev } = await import('./dev.ts')
    await dev(terminal, config, flags)
  })

  program.command('dev-worker', { hidden: true }).action(async (_, command: Command) => {
    const { runDevWorker } = await import('./dev-worker.ts')
    await runDevWorker(terminal, await readConfig(command, terminal), version)
  })

  add('start', 'run the sidecar').action(async (_, command: Command) => {
    const config = await readConfig(command, terminal)
    const { start } = await import('./start.ts')
    await start(terminal, config, version)
  })

  add('deploy', 'deploy the design documents to the databases')
    .option('--dry-run', 'only show what would change')
    .option('--ddocs <folder>', 'a folder of your own design documents, for --database')
    .option('--database <name>', "the database that gets them, or a glob: 'userdb-*'")
    .option('--prune', 'remove design documents that the folder does not have')
    .option('--rollback', 'undo a deploy that is not complete')
    .option('--take-over', 'deploy even if another deploy seems to be running')
    .option('--no-disk-check', 'build indexes even if the disk seems too small')
    .option('--remove-machines', 'remove state machines that no handler module declares any more')
    .option('--target <dialect>', 'es2017, or es5 for SpiderMonkey 1.8.5 (default: what the server needs)')
    .action(async (options: DeployFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { deploy } = await import('./deploy.ts')
      await deploy(terminal, config, options)
    })

  add('status', 'count documents by type and state; show indexes, workers and handlers')
    .option('--stuck', 'list stuck documents: why, since when, and the command that mends them')
    .option('--json', 'as JSON')
    .action(async (options: StatusFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { status } = await import('./status.ts')
      await status(terminal, config, options)
    })

  add('explain', 'explain what happens to one document, and why')
    .argument('<db>', 'its database')
    .argument('<docid>', 'its id')
    .option('--json', 'as JSON')
    .action(async (db: string, id: string, options: { json?: boolean }, command: Command) => {
      const config = await readConfig(command, terminal)
      const { explainOne } = await import('./explain.ts')
      await explainOne(terminal, config, { db, id }, options)
    })

  add('canary', 'test the whole path with a document: write, find, claim, handle, save; print the time it took')
    .option('--within <time>', 'how long it may take', '10s')
    .option('--json', 'as JSON')
    .action(async (options: CanaryFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { canary } = await import('./canary.ts')
      await canary(terminal, config, options)
    })

  addFilter(add('list', 'list documents that failed, are parked, or wait for their next attempt'))
    .argument('[db]', "a database, or a glob: 'userdb-*' (default: all in the settings)")
    .option('--json', 'as JSON, a line for each document')
    .action(async (db: string | undefined, options: ListFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { list } = await import('./list.ts')
      await list(terminal, config, db, options)
    })

  const addAction = (name: string, description: string) =>
    addFilter(add(name, description))
      .argument('<db>', "its database; without an id also a glob: 'userdb-*'")
      .argument('[docid]', 'its id')
      .option('--all', 'all that failed, are parked, or wait for their next attempt')
      .option('--dry-run', 'only count the selected documents')
      .option('--json', 'as JSON, a line for each document')

  addAction(
    'retry',
    'run the handlers again for documents that failed, are parked, or wait for their next attempt',
  ).action(async (db: string, id: string | undefined, options: ActFlags, command: Command) => {
    const config = await readConfig(command, terminal)
    const { retryDocuments } = await import('./act.ts')
    await retryDocuments(terminal, config, { db, id }, options)
  })

  addAction('discard', 'give up documents that failed, are parked, or wait; --undo restores them')
    .option('--undo', 'restore the status that discarded documents had')
    .action(async (db: string, id: string | undefined, options: ActFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { discardDocuments } = await import('./act.ts')
      await discardDocuments(terminal, config, { db, id }, options)
    })

  add('user', 'show the devices and channels of a user')
    .argument('<address>', 'the email address')
    .option('--json', 'as JSON')
    .action(async (address: string, options: { json?: boolean }, command: Command) => {
      const config = await readConfig(command, terminal)
      const { showPerson } = await import('./person.ts')
      await showPerson(terminal, config, address, options)
    })

  const addDevice = (name: string, description: string, act: 'revokeDevice' | 'mailDeviceAgain') =>
    add(name, description)
      .argument('<device>', 'the id of its document')
      .action(async (id: string, _, command: Command) => {
        const config = await readConfig(command, terminal)
        await (await import('./person.ts'))[act](terminal, config, id)
      })
  addDevice('revoke', 'end the access of a device for good', 'revokeDevice')
  addDevice('mail', 'send the confirmation mail of a device again', 'mailDeviceAgain')

  const addPause = (name: string, description: string, paused: boolean) =>
    add(name, description)
      .argument('<handlers...>', 'by type and state: order/paid')
      .action(async (handlers: string[], _, command: Command) => {
        const config = await readConfig(command, terminal)
        const { setPaused } = await import('./pause.ts')
        await setPaused(terminal, config, handlers, paused)
      })
  addPause('pause', 'stop starting a handler, on all workers; its documents wait', true)
  addPause('resume', 'start a paused handler again', false)

  add('set', 'change the concurrency or rate limit of a handler, on all workers, without a deploy')
    .argument('<handlers...>', 'by type and state: order/paid')
    .option('--concurrency <count>', "attempts at the same time in each process; or default: the handler's option")
    .option('--limit <count/time>', 'attempts started in a time, on all workers together, such as 600/1m; or default')
    .action(async (handlers: string[], options: SetFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { setHandlers } = await import('./pause.ts')
      await setHandlers(terminal, config, handlers, options)
    })

  program
    .command('version')
    .description('print the version')
    .action(() => terminal.print(version))
  return program
}

/** Adds the flags that select documents. */
function addFilter(command: Command): Command {
  for (const [flags, meaning] of FILTER_FLAGS) command.option(flags, meaning)
  return command
}

/** Removes the last line break: a terminal adds its own. */
const withoutEnd = (text: string): string => text.replace(/\n$/, '')

/** Adds a flag for every setting. The table of settings is their only list. */
async function addSettings(command: Command): Promise<void> {
  const { describeSettings } = await import('../config.ts')
  for (const { name, flag, argument, default: byDefault, meaning } of describeSettings()) {
    command.addOption(new Option(`${flag} <${argument}>`, `${meaning} (${name}; default ${byDefault})`))
  }
}

/** Reads the settings from flags, environment and `.env` file. Throws `ConfigError`. */
async function readConfig(command: Command, { env, envFile }: Pick<Terminal, 'env' | 'envFile'>): Promise<Config> {
  const { loadConfig } = await import('../config.ts')
  return loadConfig({ env, flags: await readFlags(command), envFile })
}

async function readFlags(command: Command): Promise<Record<string, string | undefined>> {
  const { describeSettings } = await import('../config.ts')
  const options = command.opts<Record<string, string | undefined>>()
  return Object.fromEntries(describeSettings().map(({ name, flag }) => [name, options[camelCase(flag)]]))
}

const camelCase = (flag: string) => flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** 0: success; 1: failure; 2: wrong usage or settings. */
type ExitCode = 0 | 1 | 2

/** Runs one command and prints its errors. `args` are those after the program's name. */
export async function run(given: Terminal, version: string, args: readonly string[]): Promise<ExitCode> {
  const terminal = withPrintable(given)
  try {
    await createProgram(terminal, version).parseAsync(args, { from: 'user' })
    return 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2 // commander has printed the error
    for (const line of linesOf(thrown)) terminal.note(line)
    return thrown instanceof ConfigError ? 2 : 1
  }
}

function linesOf(thrown: unknown): string[] {
  if (thrown instanceof ConfigError) return thrown.faults.map((fault) => `couchdb-sidecar: ${fault}`)
  return [thrown instanceof SidecarError ? `couchdb-sidecar: ${thrown.message}` : inspect(thrown)]
}
