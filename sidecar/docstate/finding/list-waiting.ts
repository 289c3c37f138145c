import type { z } from 'zod'
import { isoTime, type Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import type { Partition, TypeAndState } from '../../workers/partitioning.ts'
import { handlerDefaults } from '../handler-options.ts'
import { undeclaredIn, type UndeclaredCount } from '../undeclared.ts'
import type { ResolvedOptions } from '../types.ts'
import { rangesOf } from './ranges.ts'
import { IN_CONFLICT, typesAndStatesOf, typesOf, type DispatchTable } from '../classify.ts'
import {
  BY_STATE,
  CONFLICTS,
  DDOC,
  pages,
  VIEW_TIMEOUT_MS,
  countRow,
  keyRow,
  type Listed,
  type ListPages,
} from './pages.ts'

export interface ListWaitingOptions {
  readonly database: Database
  /** Current table. */
  readonly table: () => DispatchTable
  readonly partition: Partition
  readonly listPages: ListPages
  readonly clock: Clock
  /** Documents due later than this from now are left to the next resync. */
  readonly horizonMs: number
  /** Receives the first due time beyond the horizon for each type, state and status. */
  readonly later: (at: number) => void
  /** Whether ready documents of this type and state are left alone. */
  readonly isPaused: (pair: TypeAndState) => boolean
  /** Receives each paused type and state that has ready documents. */
  readonly onPaused: (pair: TypeAndState) => void
  /** Receives at each resync the counts of documents in undeclared states. */
  readonly undeclared: (counts: readonly UndeclaredCount[]) => void
  /**
   * Takes documents of one type and state; with `anyway` also other workers'. Returns whether to read the next page.
   */
  readonly take: (ids: readonly string[], anyway: boolean, signal: AbortSignal) => Promise<boolean>
}

/** Finds every document that waits for this worker. Throws `CouchError`. */
export type ListWaiting = (signal: AbortSignal) => Promise<void>

/** Maximum documents of other workers to remember per type and state: they are taken if their worker does nothing. */
const MAX_REMEMBERED = 1000

/**
 * The list finds all waiting documents; the feed is only faster. The view `by_state`, key `[type, state, status, at]`,
 * lists documents in handled states: all that are ready, claimed, or due soon. Documents in conflict are listed in any
 * state. Reads ids only.
 *
 * Another worker's document that still waits at the second resync is taken: its worker does nothing about it. Handlers
 * with a key or a global concurrency are exempt: their documents may have to wait long. With a key, an id does not show
 * whose the document is, so all are read.
 */
export function createListWaiting(options: ListWaitingOptions): ListWaiting {
  const { database, table, partition, listPages, clock, horizonMs, later, undeclared, take, isPaused, onPaused } =
    options
  let waited = new Set<string>()

  /** One request shows which keys have rows: mostly none has. */
  const group = <R>(view: string, row: z.ZodType<R>, level: number, signal: AbortSignal) =>
    database.view(DDOC, view, row, { group_level: level }, { signal, timeoutMs: VIEW_TIMEOUT_MS })

  /** Finds the first due time beyond the horizon. */
  async function lookFurther(key: readonly string[], horizon: string, signal: AbortSignal): Promise<void> {
    const query = { startkey: [...key, horizon, {}], endkey: [...key, {}], reduce: false, limit: 1 }
    const rows = await database.view(DDOC, BY_STATE, keyRow, query, { signal, timeoutMs: VIEW_TIMEOUT_MS })
    const at = rows[0]?.key[3]
    if (typeof at === 'string') later(Date.parse(at))
  }

  return async (signal) => {
    const known = table()
    const now = isoTime(clock.now())
    const horizon = isoTime(clock.now() + horizonMs)
    const waiting = new Set<string>()
    const lateIn = (pair: TypeAndState) => {
      let remembered = 0
      return ({ id, at }: Listed) => {
        if (at !== null && at > now) return false
        const name = JSON.stringify([pair.type, pair.state, id])
        if (remembered++ < MAX_REMEMBERED) waiting.add(name)
        return waited.has(name)
      }
    }
    const grouped = await group(BY_STATE, countRow, 3, signal)
    const counts = grouped.map(({ key: [type, state], value: count }) => ({ type, state, count }))
    undeclared(undeclaredIn(counts, known.machines))
    const isOccupied = amongKeys(grouped)
    for (const pair of inOrder(known)) {
      const { key: keyOf, globalConcurrency } = optionsOf(known, pair)
      const isLate = keyOf || globalConcurrency !== undefined ? () => false : lateIn(pair)
      const has = (status: string) => isOccupied([pair.type, pair.state, status])
      const { timeout, renamed } = known.machines[pair.type]?.[pair.state] ?? {}
      const isRenamed = renamed !== undefined
      const paused = !isRenamed && isPaused(pair)
      if (paused && (has('ready') || has('retry') || has('timeout'))) onPaused(pair)
      const registration = handlerOf(known, pair)
      const hasEnd = timeout !== undefined
      for (const { status, until, among } of rangesOf({ registration, hasEnd, paused, isRenamed }, horizon)) {
        if (!among.some(has)) continue
        for await (const rows of listPages(pair, status, until, signal)) {
          const isOurs = ({ id }: Listed) => status === 'claimed' || keyOf !== undefined || partition.isOurs(pair, id)
          const ours = rows.filter(isOurs)
          const isDue = (row: Listed) => isLate(until === horizon ? row : { ...row, at: null })
          const late = rows.filter((row) => !isOurs(row) && isDue(row))
          if (!(await take(idsOf(ours), false, signal))) break
          if (!(await take(idsOf(late), true, signal))) break
        }
        if (until === horizon) await lookFurther([pair.type, pair.state, status], horizon, signal)
      }
    }
    const hasConflicts = amongKeys(await group(CONFLICTS, keyRow, 1, signal))
    for (const type of typesOf(known)) {
      if (!hasConflicts([type])) continue
      const pair = { type, state: IN_CONFLICT }
      const isLate = lateIn(pair)
      for await (const rows of pages(database, { startkey: [type], endkey: [type, {}] }, signal, CONFLICTS)) {
        const ours = rows.filter(({ id }) => partition.isOurs(pair, id))
        const late = rows.filter((row) => !ours.includes(row) && isLate(row))
        if (!(await take(idsOf(ours), false, signal))) break
        if (!(await take(idsOf(late), true, signal))) break
      }
    }
    waited = waiting
  }
}

/** The most urgent first. */
function inOrder(table: DispatchTable): TypeAndState[] {
  const priorityOf = (pair: TypeAndState) => optionsOf(table, pair).priority ?? handlerDefaults.priority
  return typesAndStatesOf(table).sort((a, b) => priorityOf(a) - priorityOf(b))
}

const handlerOf = ({ registrations }: DispatchTable, { type, state }: TypeAndState) =>
  registrations.find((one) => one.type === type && one.state === state)

const optionsOf = (table: DispatchTable, pair: TypeAndState): Partial<ResolvedOptions> =>
  handlerOf(table, pair)?.options ?? {}

function amongKeys(rows: readonly { readonly key: readonly unknown[] }[]): (key: readonly string[]) => boolean {
  const keys = new Set(rows.map(({ key }) => JSON.stringify(key)))
  return (key) => keys.has(JSON.stringify(key))
}

const idsOf = (rows: readonly Listed[]): string[] => rows.map(({ id }) => id)
