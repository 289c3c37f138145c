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
 * The command line. Commands throw; `run` makes an exit code of that. Each command is loaded when it is called, and so are
 * the settings: `version` and `--help` load nothing else.
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

  add('deploy', 'bring the design documents into the databases')
    .option('--dry-run', 'only show what would change')
    .option('--ddocs <folder>', 'a folder of your own design documents, for --database')
    .option('--database <name>', "the database that gets them, or a glob: 'userdb-*'")
    .option('--prune', 'remove design documents that the folder does not have')
    .option('--rollback', 'take back what a deploy has left unfinished')
    .option('--take-over', 'go on also where another deploy seems to be at work')
    .option('--no-disk-check', 'build indexes also where the disk seems too small')
    .option('--remove-machines', 'take out machines that no handlers declare any more, and their guard')
    .option('--target <dialect>', 'es2017, or es5 for SpiderMonkey 1.8.5 (default: what the server needs)')
    .action(async (options: DeployFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { deploy } = await import('./deploy.ts')
      await deploy(terminal, config, options)
    })

  add('status', 'count the documents of each type by state; tell how far the indexes are, and who works')
    .option('--stuck', 'which documents do not go on: why, since when, and what brings them on')
    .option('--json', 'as JSON')
    .action(async (options: StatusFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { status } = await import('./status.ts')
      await status(terminal, config, options)
    })

  add('explain', 'tell what happens to one document, and why')
    .argument('<db>', 'its database')
    .argument('<docid>', 'its id')
    .option('--json', 'as JSON')
    .action(async (db: string, id: string, options: { json?: boolean }, command: Command) => {
      const config = await readConfig(command, terminal)
      const { explainOne } = await import('./explain.ts')
      await explainOne(terminal, config, { db, id }, options)
    })

  add('canary', 'send a document the whole way: written, found, claimed, handled, saved; tell how long it took')
    .option('--within <time>', 'how long it may take', '10s')
    .option('--json', 'as JSON')
    .action(async (options: CanaryFlags, command: Command) => {
      const config = await readConfig(command, terminal)
      const { canary } = await import('./canary.ts')
      await canary(terminal, config, options)
    })

  addFilter(add('list', 'list documents that failed, are parked, or wait for their next try'))
    .argument('[db]', "a database, or a glob: 'userdb-*' (default all that the settings name)")
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
      .option('--all', 'all that failed, are parked, or wait for their next try')
      .option('--dry-run', 'only count those that are meant')
      .option('--json', 'as JSON, a line for each document')

  addAction(
    'retry',
    'bring documents that failed, are parked or wait for their next try back to their handlers',
  ).action(async (db: string, id: string | undefined, options: ActFlags, command: Command) => {
    const config = await readConfig(command, terminal)
    const { retryDocuments } = await import('./act.ts')
    await retryDocuments(terminal, config, { db, id }, options)
  })

  addAction('discard', 'end what is to be done with documents that failed, are parked or wait; --undo takes it back')
    .option('--undo', 'let discarded documents stand as they stood before')
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
  addDevice('revoke', 'end the access of a device, for good', 'revokeDevice')
  addDevice('mail', 'send the mail again that confirms a device', 'mailDeviceAgain')

  const addPause = (name: string, description: string, paused: boolean) =>
    add(name, description)
      .argument('<handlers...>', 'by type and state: order/paid')
      .action(async (handlers: string[], _, command: Command) => {
        const config = await readConfig(command, terminal)
        const { setPaused } = await import('./pause.ts')
        await setPaused(terminal, config, handlers, paused)
      })
  addPause('pause', 'let no run of a handler begin, in all workers; what comes waits', true)
  addPause('resume', 'let a handler go on that is paused', false)

  add('set', 'change how many runs of a handler there are, in all workers, without a deploy')
    .argument('<handlers...>', 'by type and state: order/paid')
    .option('--concurrency <count>', "at the same time in each process; or default: as the handler's options say")
    .option('--limit <count/time>', 'that begin in a time, in all workers together, such as 600/1m; or default')
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

/** The flags that say which documents are meant. */
function addFilter(command: Command): Command {
  for (const [flags, meaning] of FILTER_FLAGS) command.option(flags, meaning)
  return command
}

/** A terminal ends lines itself. */
const withoutEnd = (text: string): string => text.replace(/\n$/, '')

/** Every setting is also a flag; the table of settings is the only list of them. */
async function addSettings(command: Command): Promise<void> {
  const { describeSettings } = await import('../config.ts')
  for (const { name, flag, argument, default: byDefault, meaning } of describeSettings()) {
    command.addOption(new Option(`${flag} <${argument}>`, `${meaning} (${name}; default ${byDefault})`))
  }
}

/** The settings as flags, environment and the `.env` file give them. Throws `ConfigError`. */
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

/** 0 fine, 1 failed, 2 wrong usage or settings. */
type ExitCode = 0 | 1 | 2

/** Runs one command to its end, and says on the terminal what went wrong. `args` are those after the program's name. */
export async function run(given: Terminal, version: string, args: readonly string[]): Promise<ExitCode> {
  const terminal = withPrintable(given)
  try {
    await createProgram(terminal, version).parseAsync(args, { from: 'user' })
    return 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2 // it has said so itself
    for (const line of linesOf(thrown)) terminal.note(line)
    return thrown instanceof ConfigError ? 2 : 1
  }
}

function linesOf(thrown: unknown): string[] {
  if (thrown instanceof ConfigError) return thrown.faults.map((fault) => `couchdb-sidecar: ${fault}`)
  return [thrown instanceof SidecarError ? `couchdb-sidecar: ${thrown.message}` : inspect(thrown)]
}
