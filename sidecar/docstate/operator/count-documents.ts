import { z } from 'zod'
import { isoTime } from '../../core/clock.ts'
import { NEVER_MS, STUCK } from '../../../ddocs/lib/stuck.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { BY_STATE, DDOC, STUCK_VIEW, countRow } from '../finding/pages.ts'

/** How many documents of a type are in a state, and how they stand there. */
export interface StateCount {
  readonly type: string
  readonly state: string
  /** `ready`, `retry`, `claimed`, `parked`, `handled`, `timeout`, `failed` or `discarded`. */
  readonly status: string
  readonly count: number
}

/** How many documents are stuck for one reason. */
export interface StuckCount extends StateCount {
  /** In which their handler failed, or was to run. */
  readonly state: string
  readonly status: Status
  /** Of the failure, undefined where there was none. */
  readonly code: string | undefined
  /** Since when the oldest is, ISO 8601; undefined where nothing tells. */
  readonly since: string | undefined
}

/** What is in a database. */
export interface Counts {
  readonly counts: readonly StateCount[]
  readonly stuck: readonly StuckCount[]
}

/** Less than the five minutes after which the connection would be given up. */
const ASK_MS = 240_000

/**
 * Counts from the views `by_state` and `stuck`. The first question after many writes waits for the index, which may take
 * hours: it is asked until there is an answer or the signal aborts. Throws `CouchError` `not_found` where the design
 * document is not deployed.
 */
export async function countDocuments(database: Database, signal?: AbortSignal): Promise<Counts> {
  for (;;) {
    try {
      return await countDocumentsWithin(database, ASK_MS, signal)
    } catch (thrown) {
      if (!isCouchError(thrown) || (thrown.code !== 'timeout' && thrown.error !== 'timeout')) throw thrown
    }
  }
}

/** The same, asked once: throws `CouchError` `timeout` where the index is not built within so many milliseconds. */
export async function countDocumentsWithin(
  database: Database,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Counts> {
  const options = { signal, timeoutMs }
  const rows = await database.view(DDOC, BY_STATE, countRow, { group_level: 3 }, options)
  const counts = rows.map(({ key: [type, state, status = ''], value: count }) => ({ type, state, status, count }))
  if (!counts.some(({ status }) => STUCK.includes(status as Status))) return { counts, stuck: [] }
  const found = await database.view(DDOC, STUCK_VIEW, stuckRow, { group_level: 4 }, options)
  return { counts, stuck: found.map(stuckCount) }
}

const stuckRow = z.object({
  key: z.tuple([z.string(), z.string(), z.enum(STUCK), z.string().nullable()]),
  value: z.object({ count: z.number(), min: z.number() }),
})

const stuckCount = ({ key: [type, state, status, code], value: { count, min } }: z.infer<typeof stuckRow>) => ({
  ...{ type, state, status, count, code: code ?? undefined },
  since: min === NEVER_MS ? undefined : isoTime(min),
})
