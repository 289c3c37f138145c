import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import { countStates, type StateCount } from '../docstate/operator/status.ts'
import { keepsIndexes } from '../duties.ts'
import { measureIndexes } from '../indexes/measure.ts'
import { readNotes } from '../indexes/notes.ts'
import { patternsOf, resolveDatabases } from '../databases/roster.ts'
import { listWorkers, type Listed } from '../workers/list.ts'
import { withCouch } from './connect.ts'
import { indexLines } from './index-lines.ts'
import type { Terminal } from './terminal.ts'
import { whileBuilding } from './while-building.ts'

/** How many documents of each type are in which state, and how they stand there; how far the indexes are; which workers there are. */
export async function status(terminal: Terminal, config: Config): Promise<void> {
  const { signal } = terminal
  await withCouch(config, async (couch) => {
    const names = await resolveDatabases(couch, patternsOf(config), signal)
    for (const database of names) {
      try {
        const counting = countStates(couch.db(database), signal)
        terminal.print(table(database, await whileBuilding(counting, { couch, database, terminal })))
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        terminal.print(`${database}\n  not deployed yet: run "couchdb-sidecar deploy", or start the sidecar`)
      }
    }
    const workers = await workersIn(couch.db(config.controlDb), signal)
    const indexes = await indexesIn(couch, names, workers, config.controlDb, signal)
    terminal.print(['indexes', ...indexes].join('\n  '))
    terminal.print(`workers\n${workers.length > 0 ? workers.map(lineOf).join('\n') : '  none is running'}`)
  })
}

async function indexesIn(
  couch: Couch,
  databases: Iterable<string>,
  workers: readonly Listed[],
  controlDb: string,
  signal: AbortSignal,
): Promise<string[]> {
  const keepers = workers.filter(keepsIndexes).map(({ id }) => id)
  const notes = await readNotes(couch.db(controlDb), keepers, signal)
  return indexLines(await measureIndexes(couch, databases, signal), notes)
}

async function workersIn(database: Database, signal: AbortSignal): Promise<readonly Listed[]> {
  try {
    return await listWorkers(database, signal)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return []
    throw thrown
  }
}

/** Times are those of the worker's own clock. */
const lineOf = ({ role, id, registeredAt, seenAt }: Listed) =>
  `  ${role}  ${id}  since ${registeredAt}, last sign of life ${seenAt ?? 'none'}`

const notes: Readonly<Record<string, string>> = {
  parked: 'a worker was lost: "couchdb-sidecar retry" after a look',
  retry: 'failed, will be tried again',
}

function table(name: string, counts: readonly StateCount[]): string {
  if (counts.length === 0) return `${name}\n  no documents with a type and a state`
  const rows = counts.map(({ type, state, status: standing, count }) => [
    type,
    state,
    String(count),
    standing === 'ready' ? '' : `${standing}${notes[standing] ? ` (${notes[standing]})` : ''}`,
  ])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  const line = ([type, state, count, note]: string[]) =>
    `  ${type!.padEnd(widths[0]!)}  ${state!.padEnd(widths[1]!)}  ${count!.padStart(widths[2]!)}  ${note}`.trimEnd()
  return [name, ...rows.map(line)].join('\n')
}
