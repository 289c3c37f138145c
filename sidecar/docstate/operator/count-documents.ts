import { z } from 'zod'
import { isoTime } from '../../core/clock.ts'
import { NEVER_MS, STUCK } from '../../../ddocs/lib/stuck.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { BY_STATE, DDOC, STUCK_VIEW, countRow } from '../finding/pages.ts'

/** Number of documents of a type in a state and status. */
export interface StateCount {
  readonly type: string
  readonly state: string
  /** `ready`, `retry`, `claimed`, `parked`, `handled`, `timeout`, `failed` or `discarded`. */
  readonly status: string
  readonly count: number
}

/** Number of documents that are stuck for one reason. */
export interface StuckCount extends StateCount {
  /** State in which their handler failed or was to run. */
  readonly state: string
  readonly status: Status
  /** Code of the failure; undefined if none. */
  readonly code: string | undefined
  /** When the oldest one got stuck, ISO 8601; undefined if not recorded. */
  readonly since: string | undefined
}

/** Counts of the documents in a database. */
export interface Counts {
  readonly counts: readonly StateCount[]
  readonly stuck: readonly StuckCount[]
}

/** Less than the five minutes after which the connection would time out. */
const ASK_MS = 240_000

/**
 * Counts documents by the views `by_state` and `stuck`. The first request after many writes waits for the index, which
 * may take hours. It is repeated until an answer comes or the signal aborts. Throws `CouchError` `not_found` if the
 * design document is not deployed.
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

/** Counts documents with one try. Throws `CouchError` `timeout` if the index is not built within `timeoutMs`. */
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
