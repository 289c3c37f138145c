import type { Config } from '../config.ts'
import { ConfigError } from '../core/errors.ts'
import { shellWord } from '../core/shell-word.ts'
import type { Database } from '../couch/database.ts'
import {
  changeHandlers,
  concurrencyFrom,
  limitFrom,
  unknownHandlers,
  type HandlerChange,
} from '../databases/change-handlers.ts'
import { handlerSettingsIn, settingInWords } from '../databases/handler-settings.ts'
import { operatorIn, withCouch } from './connect.ts'
import { oneLine } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

/** Pauses or resumes handlers, named `type/state`, in all databases and workers. */
export async function setPaused(
  terminal: Terminal,
  config: Config,
  names: readonly string[],
  paused: boolean,
): Promise<void> {
  await withCouch(config, async (couch) => {
    const control = couch.db(config.controlDb)
    if (paused) await checkNames('pause', control, names, terminal)
    const change = { paused: paused || null }
    await changeHandlers(control, names, change, { by: operatorIn(config), signal: terminal.signal })
    for (const name of names) terminal.print(oneLine(paused ? pausedLine(name) : `${name} is resumed`))
  })
}

export interface SetFlags {
  readonly concurrency?: string
  readonly limit?: string
}

/** Sets concurrency and rate limit of handlers, named `type/state`, on all workers. */
export async function setHandlers(
  terminal: Terminal,
  config: Config,
  names: readonly string[],
  flags: SetFlags,
): Promise<void> {
  const change = changeFrom(flags)
  await withCouch(config, async (couch) => {
    const control = couch.db(config.controlDb)
    await checkNames('set', control, names, terminal)
    await changeHandlers(control, names, change, { by: operatorIn(config), signal: terminal.signal })
    const settings = await handlerSettingsIn(control, terminal.signal)
    for (const name of names) terminal.print(oneLine(`${name}: ${settingInWords(settings[name])}`))
  })
}

function changeFrom({ concurrency, limit }: SetFlags): HandlerChange {
  const read = {
    ...(concurrency !== undefined && { concurrency: concurrencyFrom(concurrency) }),
    ...(limit !== undefined && { limit: limitFrom(limit) }),
  }
  const faults = Object.entries(read).flatMap(([flag, value]) =>
    typeof value === 'string' ? [`set: --${flag}: ${value}`] : [],
  )
  if (Object.keys(read).length === 0) faults.push('set: expected --concurrency or --limit')
  if (faults.length > 0) throw new ConfigError(faults)
  return read as HandlerChange
}

const pausedLine = (name: string) =>
  `${name} is paused: running attempts finish, no other starts. To resume: couchdb-sidecar resume ${shellWord(name)}`

/** Refuses a name that no running worker has. If no worker runs, names cannot be checked. */
async function checkNames(
  command: string,
  control: Database,
  names: readonly string[],
  { note, signal }: Terminal,
): Promise<void> {
  const faults = await unknownHandlers(control, names, signal)
  if (!faults) return note('no worker is running: the names of the handlers cannot be checked')
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${command}: ${fault}`))
}
