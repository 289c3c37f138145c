import { settingsId, type HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { measureIndexes } from '../indexes/measure.ts'
import { buildsIndexes, readNotes } from '../indexes/notes.ts'
import { groupDatabases, patternsOf } from '../databases/patterns.ts'
import { findStuck, type StuckGroup } from '../databases/stuck.ts'
import { listWorkers, type Listed } from '../workers/list-workers.ts'
import { ConfigError } from '../core/errors.ts'
import { shellWord } from '../core/shell-word.ts'
import type { Registration } from '../docstate/types.ts'
import { optionsLine, scheduleLine } from '../docstate/handler-options.ts'
import { withCouch } from './connect.ts'
import { behindOf, indexLines } from './index-lines.ts'
import { loadHandlers } from './load-handlers.ts'
import { oneLine } from '../core/visible.ts'
import { tableOf, tableOfMany, type Counted } from './state-table.ts'
import type { Terminal } from './terminal.ts'
import { Semaphore } from '../core/semaphore.ts'
import { countDocuments } from '../docstate/operator/count-documents.ts'
import { handlerSettingsIn } from '../databases/handler-settings.ts'
import { eachDatabase } from './each-database.ts'
import { whileBuilding } from './while-building.ts'

/** If a glob matches more databases, they are counted together, and their indexes are not read. */
const FEW = 5

export interface StatusFlags {
  readonly stuck?: boolean
  readonly json?: boolean
}

/** Prints the documents by type, state and status, the indexes' progress, the workers and the handlers. */
export async function status(terminal: Terminal, config: Config, { stuck, json }: StatusFlags = {}): Promise<void> {
  const print = (value: unknown, text: () => string) => terminal.print(json ? JSON.stringify(value, null, 2) : text())
  await withCouch(config, async (couch) => {
    const [workers, settings] = await Promise.all([
      listWorkers(couch.db(config.controlDb), terminal.signal),
      handlerSettingsIn(couch.db(config.controlDb), terminal.signal),
    ])
    if (stuck) {
      const paused = new Set(Object.keys(settings).filter((name) => settings[name]?.paused))
      const databases = eachDatabase(couch, config, undefined, terminal)
      const { signal } = terminal
      const groups = await findStuck({ couch, databases, patterns: patternsOf(config), workers, paused, signal })
      return print(groups, () => ['stuck', ...stuckLines(groups)].join('\n'))
    }
    const groups = await groupDatabases(couch, patternsOf(config), terminal.signal)
    const counted = new Map<string, readonly Counted[]>()
    for (const [pattern, names] of groups) {
      const counts = await countDatabases(couch, names, terminal)
      counted.set(pattern, counts)
      if (json) continue
      if (names.length > FEW) terminal.print(tableOfMany(pattern, counts))
      else for (const one of counts) terminal.print(tableOf(one))
    }
    const few = [...groups].flatMap(([, names]) => (names.length <= FEW ? names : []))
    const indexes = await indexesIn(couch, few, workers, config.controlDb, terminal.signal)
    const { handlers, lines, faults } = await handlersIn(config)
    if (json) {
      const databases = [...counted.values()]
        .flat()
        .map(({ database, counts }) => ({ database, counts: counts ?? null }))
      return print({ databases, indexes: indexes.behind, workers, handlers, faults, settings }, () => '')
    }
    const omitted = [...groups].filter(([, names]) => names.length > FEW).map(([pattern]) => pattern)
    const others = omitted.map((pattern) => `for ${pattern}, use GET /_indexes of a sidecar`)
    terminal.print(['indexes', ...indexes.lines, ...others].join('\n  '))
    terminal.print(`workers\n${workers.length > 0 ? workers.map(lineOf).join('\n') : '  no worker is running'}`)
    const all = [...lines, ...settingLines(settings)]
    if (all.length > 0) terminal.print(['handlers', ...all].join('\n  '))
  })
}

function stuckLines(groups: readonly StuckGroup[]): string[] {
  if (groups.length === 0) return ['no document is stuck']
  return groups.flatMap(({ databases, type, state, status, count, since, code, why, next, example }) => {
    const reason = [code, why].filter(Boolean).join(': ')
    const old = since === undefined ? '' : `, oldest since ${since}`
    const such =
      example === undefined
        ? ''
        : `, such as ${example.id}${example.database === databases ? '' : ` in ${example.database}`}`
    return [
      oneLine(`  ${databases}  ${type}/${state}  ${status}  ${count}${old}${such}`),
      oneLine(`    why: ${reason}`),
      oneLine(`    next: ${next}`),
    ]
  })
}

function settingLines(settings: HandlerSettings): string[] {
  return Object.entries(settings).map(([name, { paused, concurrency, limit }]) => {
    const parts = [
      ...(paused ? [`paused (to resume: couchdb-sidecar resume ${shellWord(name)})`] : []),
      ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
      ...(limit === undefined ? [] : [`limit ${limit.count} in ${limit.per}`]),
    ]
    return oneLine(`${name}  live settings (${settingsId('handlers')}): ${parts.join(', ') || 'none'}`)
  })
}

interface Handlers {
  readonly handlers: readonly Pick<Registration, 'type' | 'state' | 'mode' | 'options'>[]
  readonly lines: readonly string[]
  /** Why the handlers cannot be loaded. */
  readonly faults: readonly string[]
}

/** Describes the handlers in the settings by their own options. */
async function handlersIn({ handlers }: Config): Promise<Handlers> {
  if (handlers.length === 0) return { handlers: [], lines: [], faults: [] }
  try {
    const { registrations, shadows, schedules } = await loadHandlers(handlers)
    const all = [...registrations, ...shadows]
    const lineOf = (one: Registration) => `${one.type}/${one.state}  ${one.mode}  ${optionsLine(one)}`
    const shown = all.map(({ type, state, mode, options }) => ({ type, state, mode, options }))
    return { handlers: shown, lines: [...all.map(lineOf), ...schedules.map(scheduleLine)].map(oneLine), faults: [] }
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const lines = thrown.faults.map((fault) => oneLine(`cannot be loaded: ${fault}`))
    return { handlers: [], lines, faults: thrown.faults }
  }
}

async function indexesIn(
  couch: Couch,
  databases: Iterable<string>,
  workers: readonly Listed[],
  controlDb: string,
  signal: AbortSignal,
) {
  const keepers = workers.filter(buildsIndexes).map(({ id }) => id)
  const notes = await readNotes(couch.db(controlDb), keepers, signal)
  const measured = await measureIndexes(couch, databases, signal)
  const { own, others } = behindOf(measured, notes)
  return { lines: indexLines(measured, notes), behind: [...own, ...others] }
}

/** Times come from the worker's own clock. */
const lineOf = ({ role, id, registeredAt, seenAt }: Listed) =>
  oneLine(`  ${role}  ${id}  since ${registeredAt}, last heartbeat ${seenAt ?? 'none'}`)

/** Maximum databases counted at once. */
const TOGETHER = 16

/** Counts the documents of each database, in the given order. Shows the progress if the databases are many. */
export async function countDatabases(
  couch: Couch,
  databases: readonly string[],
  terminal: Pick<Terminal, 'note' | 'redraw' | 'signal'>,
): Promise<Counted[]> {
  const semaphore = new Semaphore(() => TOGETHER)
  let done = 0
  async function count(database: string): Promise<Counted> {
    try {
      const counting = countDocuments(couch.db(database), terminal.signal)
      const { counts } = await whileBuilding(counting, { couch, database, terminal })
      return { database, counts }
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
