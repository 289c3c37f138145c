import type { Config } from '../config.ts'
import { ConfigError } from '../core/errors.ts'
import { shellWord } from '../core/shell-word.ts'
import { didYouMean } from '../core/nearest.ts'
import type { Database } from '../couch/database.ts'
import { handlersOf } from '../databases/capabilities.ts'
import { setPaused as writePaused } from '../databases/set-paused.ts'
import { listWorkers } from '../workers/list.ts'
import { operatorIn, withCouch } from './connect.ts'
import { oneLine } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

/** No run of these handlers begins any more, or again: by `type/state`, in all databases and workers. */
export async function setPaused(
  terminal: Terminal,
  config: Config,
  names: readonly string[],
  paused: boolean,
): Promise<void> {
  await withCouch(config, async (couch) => {
    const control = couch.db(config.controlDb)
    if (paused) await checkNames(control, names, terminal)
    await writePaused(control, names, paused, { by: operatorIn(config), signal: terminal.signal })
    for (const name of names) terminal.print(oneLine(paused ? pausedLine(name) : `${name} goes on`))
  })
}

const pausedLine = (name: string) =>
  `${name} is paused: what runs goes on to its end, nothing else begins. To let it go on: couchdb-sidecar resume ${shellWord(name)}`

/** A name that no running worker has is a mistake; where none runs it cannot be known. */
async function checkNames(control: Database, names: readonly string[], { note, signal }: Terminal): Promise<void> {
  const known = new Set((await listWorkers(control, signal)).flatMap((worker) => handlersOf(worker)))
  if (known.size === 0) return note('no worker is running: whether there are such handlers is not known')
  const faults = names
    .filter((name) => !known.has(name))
    .map((name) => `expected a handler of a running worker, got ${name}${didYouMean(name, [...known])}`)
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `pause: ${fault}`))
}
