import { z } from 'zod'
import type { Database, ViewQuery } from '../../couch/database.ts'
import type { TypeAndState } from '../../workers/partitioning.ts'

/**
 * Design document of the view `by_state`, key `[type, state, status, at]`, in each followed database (see `ddocs/`).
 */
export const DDOC = 'docstate'
export const DDOC_ID = `_design/${DDOC}`
export const BY_STATE = 'by_state'
/** Documents that do not go on by themselves, key `[type, state, status, code, since]` (`ddocs/lib/stuck.ts`). */
export const STUCK_VIEW = 'stuck'
/** Documents with conflicting revisions, key `[type, state]`. */
export const CONFLICTS = 'conflicts'

export interface Range {
  readonly startkey: readonly unknown[]
  readonly endkey: readonly unknown[]
}

/** A row of either view, or of its reduce, whose keys are shorter. */
export const keyRow = z.object({ key: z.array(z.unknown()) })
const listedRow = keyRow.extend({ id: z.string() })
/** A count of `by_state` by type and state, and by status if the request groups by it. */
export const countRow = z.object({
  key: z.tuple([z.string(), z.string()]).rest(z.string()),
  value: z.number(),
})

const PAGE = 500
/** The first request after many writes waits for the index. */
export const VIEW_TIMEOUT_MS = 300_000

/** A listed document and its due time: ISO 8601, null for now. */
export interface Listed {
  readonly id: string
  readonly at: string | null
}

/** Position of a row: reading resumes after it. */
export interface Place {
  readonly key: readonly unknown[]
  readonly id: string
}

/** Pages of documents of a type, state and status: without a time, or due by `until`. */
export type ListPages = (
  pair: TypeAndState,
  status: string,
  until: unknown,
  signal: AbortSignal,
) => AsyncGenerator<Listed[]>

export const listPagesOf =
  (database: Database): ListPages =>
  ({ type, state }, status, until, signal) =>
    pages(database, { startkey: [type, state, status], endkey: [type, state, status, until] }, signal)

/** Reads a range of a view in pages. A document that moves meanwhile may be missed or come twice. */
export async function* pages(
  database: Database,
  range: Range,
  signal?: AbortSignal,
  view = BY_STATE,
  { size = PAGE, after }: { readonly size?: number | undefined; readonly after?: Place | undefined } = {},
): AsyncGenerator<(Listed & Place)[]> {
  let last = after
  /** Rows to skip with the key of `last`, counted only if the server lacks `startkey_docid` (PouchDB). */
  let passed: number | undefined
  for (;;) {
    const from = last ? beyond(last, passed) : { startkey: range.startkey }
    const query = { ...from, endkey: range.endkey, reduce: false, limit: size }
    const rows = await database.view(DDOC, view, listedRow, query, { signal, timeoutMs: VIEW_TIMEOUT_MS })
    if (last && passed === undefined && rows[0] && isPassed(rows[0], last)) {
      passed = 0
      continue
    }
    const news = last && passed !== undefined ? rows.filter((row) => !isPassed(row, last!)) : rows
    yield news.map(({ id, key }) => ({ id, key, at: typeof key[3] === 'string' ? key[3] : null }))
    const end = rows.at(-1)
    if (!end || rows.length < size) return
    if (last && passed !== undefined) {
      const ofKey = rows.filter((row) => isOfKey(row, end)).length
      passed = isOfKey(last, end) ? passed + ofKey : ofKey
    }
    if (!last || !isPassed(end, last)) last = end
  }
}

/** Starts at the next possible id: the row's own document may have moved. */
const beyond = ({ key, id }: Place, passed: number | undefined): ViewQuery =>
  passed === undefined ? { startkey: key, startkey_docid: `${id}\0` } : { startkey: key, skip: passed }

const isOfKey = (row: Pick<Place, 'key'>, { key }: Pick<Place, 'key'>): boolean =>
  JSON.stringify(row.key) === JSON.stringify(key)
const isPassed = (row: Place, last: Place): boolean => isOfKey(row, last) && row.id <= last.id
