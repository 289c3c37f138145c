import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import { keepsIndexes } from '../capabilities.ts'
import { measureIndexes } from '../indexes/measure.ts'
import { readNotes } from '../indexes/notes.ts'
import { groupDatabases, patternsOf } from '../databases/patterns.ts'
import { listWorkers, type Listed } from '../workers/list.ts'
import { withCouch } from './connect.ts'
import { countDatabases } from './count-databases.ts'
import { indexLines } from './index-lines.ts'
import { oneLine } from './printable.ts'
import { tableOf, tableOfMany } from './state-table.ts'
import type { Terminal } from './terminal.ts'

/** Of more databases of one glob than these the documents are counted together, and the indexes are not asked. */
const FEW = 5

/** How many documents of each type are in which state, and how they stand there; how far the indexes are; which workers there are. */
export async function status(terminal: Terminal, config: Config): Promise<void> {
  const { signal } = terminal
  await withCouch(config, async (couch) => {
    const groups = await groupDatabases(couch, patternsOf(config), signal)
    const few: string[] = []
    for (const [pattern, names] of groups) {
      const counted = await countDatabases(couch, names, terminal)
      if (names.length > FEW) terminal.print(tableOfMany(pattern, counted))
      else for (const one of counted) terminal.print(tableOf(one))
      if (names.length <= FEW) few.push(...names)
    }
    const workers = await workersIn(couch.db(config.controlDb), signal)
    const indexes = await indexesIn(couch, few, workers, config.controlDb, signal)
    const notAsked = [...groups].filter(([, names]) => names.length > FEW).map(([pattern]) => pattern)
    const others = notAsked.map((pattern) => `of ${pattern}: GET /_indexes of a sidecar tells`)
    terminal.print(['indexes', ...indexes, ...others].join('\n  '))
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
  oneLine(`  ${role}  ${id}  since ${registeredAt}, last heartbeat ${seenAt ?? 'none'}`)
