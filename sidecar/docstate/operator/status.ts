import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/errors.ts'
import { BY_STATE, DDOC, countRow } from '../finding/pages.ts'

/** How many documents of a type are in a state, and how they stand there. */
export interface StateCount {
  readonly type: string
  readonly state: string
  /** `ready`, `retry`, `claimed`, `parked`, `handled`, `timeout`, `failed` or `discarded`. */
  readonly status: string
  readonly count: number
}

/** Less than the five minutes after which the connection would be given up. */
const ASK_MS = 240_000

/**
 * Counts from the view `by_state`. The first question after many writes waits for the index, which may take hours: it
 * is asked until there is an answer or the signal aborts. Throws `CouchError` `not_found` where the design document is
 * not deployed.
 */
export async function countStates(database: Database, signal?: AbortSignal): Promise<StateCount[]> {
  for (;;) {
    try {
      return await countStatesWithin(database, ASK_MS, signal)
    } catch (thrown) {
      if (!isCouchError(thrown) || (thrown.code !== 'timeout' && thrown.error !== 'timeout')) throw thrown
    }
  }
}

/** The same, asked once: throws `CouchError` `timeout` where the index is not built within so many milliseconds. */
export async function countStatesWithin(
  database: Database,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<StateCount[]> {
  const rows = await database.view(DDOC, BY_STATE, countRow, { group_level: 3 }, { signal, timeoutMs })
  return rows.map(({ key: [type, state, status = ''], value: count }) => ({ type, state, status, count }))
}
