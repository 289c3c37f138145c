import type { Database } from '../couch/database.ts'
import { BY_STATE, DDOC } from './pages.ts'

/** How many documents of a type are in a state, and how they stand there. */
export interface StateCount {
  readonly type: string
  readonly state: string
  /** `ready`, `retry`, `claimed`, `parked`, `handled` or `timeout`. */
  readonly status: string
  readonly count: number
}

/** Counts from the view `by_state`. Throws `CouchError` `not_found` where the design document is not deployed. */
export async function countStates(database: Database): Promise<StateCount[]> {
  const { rows } = await database.view(DDOC, BY_STATE, { group_level: 3 })
  return rows.map(({ key, value }) => {
    const [type, state, status] = key as [string, string, string]
    return { type, state, status, count: Number(value) }
  })
}
