import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import { measureIndexes, type Measured } from '../indexes/measure.ts'
import { buildsIndexes, readNotes, type Note } from '../indexes/notes.ts'
import { groupDatabases, patternsOf } from '../databases/patterns.ts'
import { listWorkers, type Listed } from '../workers/list.ts'
import { ConfigError } from '../core/errors.ts'
import type { Registration } from '../docstate/types.ts'
import { optionsLine, scheduleLine } from '../docstate/handler-options.ts'
import { withCouch } from './connect.ts'
import { loadHandlers } from './load-handlers.ts'
import { oneLine } from './printable.ts'
import { tableOf, tableOfMany, type Counted } from './state-table.ts'
import type { Terminal } from './terminal.ts'
import { Semaphore } from '../core/semaphore.ts'
import { countStates } from '../docstate/operator/status.ts'
import { whileBuilding } from './while-building.ts'
import type { IndexRow } from '../indexes/rows.ts'

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
    if (config.handlers.length > 0) terminal.print(['handlers', ...(await handlerLines(config))].join('\n  '))
  })
}

/** Of the handlers in the settings: what they say of themselves. */
async function handlerLines({ handlers }: Config): Promise<string[]> {
  try {
    const { registrations, shadows, schedules } = await loadHandlers(handlers)
    const handlerLine = (one: Registration) => `${one.type}/${one.state}  ${one.mode}  ${optionsLine(one)}`
    return [...[...registrations, ...shadows].map(handlerLine), ...schedules.map(scheduleLine)].map(oneLine)
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    return thrown.faults.map((fault) => oneLine(`cannot be loaded: ${fault}`))
  }
}

async function indexesIn(
  couch: Couch,
  databases: Iterable<string>,
  workers: readonly Listed[],
  controlDb: string,
  signal: AbortSignal,
): Promise<string[]> {
  const keepers = workers.filter(buildsIndexes).map(({ id }) => id)
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

/** Asked at once. */
const TOGETHER = 16

/** Counts in each of these databases, in their order; shows how far it is, where there are many. */
export async function countDatabases(
  couch: Couch,
  databases: readonly string[],
  terminal: Pick<Terminal, 'note' | 'redraw' | 'signal'>,
): Promise<Counted[]> {
  const semaphore = new Semaphore(() => TOGETHER)
  let done = 0
  async function count(database: string): Promise<Counted> {
    try {
      const counting = countStates(couch.db(database), terminal.signal)
      return { database, counts: await whileBuilding(counting, { couch, database, terminal }) }
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      return { database, counts: undefined }
    } finally {
      done += 1
      if (databases.length > TOGETHER) terminal.redraw?.(`counting: ${done} of ${databases.length} databases`)
    }
  }
  const counted = await Promise.all(databases.map((database) => semaphore.run(() => count(database))))
  terminal.redraw?.('')
  return counted
}

/** One index that is behind. */
interface Behind {
  readonly name: string
  readonly changes: number | null
  readonly seconds?: number
  readonly building: boolean
  readonly reason?: string | undefined
}

/**
 * How far the indexes are, in lines: what was measured now, and what workers have written down of theirs, also in other
 * databases.
 *
 * @param measured undefined where the server does not tell
 */
export function indexLines(measured: readonly Measured[] | undefined, notes: readonly Note[]): string[] {
  const noted = new Map(notes.flatMap(({ behind }) => behind.map((row) => [nameOf(row), row] as const)))
  const own = (measured ?? [])
    .filter(({ lag }) => lag > 0)
    .map((index): Behind => {
      const name = nameOf({
        db_name: index.database,
        ddoc: index.ddoc,
        index: index.kind === 'view' ? null : index.name,
      })
      const row = noted.get(name)
      noted.delete(name)
      const told = row && fromRow(row)
      const changes = index.trouble === undefined ? index.lag : null
      return { ...told, name, changes, building: index.isRunning, reason: told?.reason ?? index.trouble }
    })
  const names = new Set((measured ?? []).map(({ database }) => database))
  const others = [...noted.values()].filter(({ db_name }) => !names.has(db_name)).map(fromRow)
  return [summary(measured, own, notes), ...[...own, ...others].map(indexLine).map(oneLine)]
}

function summary(measured: readonly Measured[] | undefined, behind: readonly Behind[], notes: readonly Note[]): string {
  if (!measured) return 'the server does not tell how far they are'
  const kept = notes.reduce((sum, { indexes }) => sum + indexes, 0)
  const late = notes.reduce((sum, { behind }) => sum + behind.length, 0)
  const all = kept > 0 ? `; ${kept} are kept on the whole server, ${late} of them behind for a while` : ''
  if (measured.length === 0) return `none in these databases${all}`
  return `${measured.length - behind.length} of ${measured.length} in these databases are up to date${all}`
}

const fromRow = (row: IndexRow): Behind => ({
  ...{ name: nameOf(row), changes: row.lag_changes, seconds: row.lag_seconds, building: row.building },
  reason: row.error?.reason,
})

const nameOf = ({ db_name, ddoc, index }: Pick<IndexRow, 'db_name' | 'ddoc' | 'index'>) =>
  [db_name, ddoc, ...(index === null ? [] : [index])].join('  ')

function indexLine({ name, changes, seconds, building, reason }: Behind): string {
  const far = changes === null ? 'behind' : `${changes} ${changes === 1 ? 'change' : 'changes'} behind`
  const long = seconds === undefined ? '' : ` for ${Math.round(seconds)} s`
  return `${name}  ${far}${long}${building ? ', being built' : ''}${reason === undefined ? '' : `: ${reason}`}`
}
