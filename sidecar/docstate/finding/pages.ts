import type { Database, ViewQuery } from '../../couch/database.ts'

/** The view of documents by state, key `[type, state, status, at]`, in every followed database (see `ddocs/`). */
export const DDOC = 'docstate'
export const DDOC_ID = `_design/${DDOC}`
export const BY_STATE = 'by_state'
/** Documents of which there is more than one last revision, key `[type, state]`. */
export const CONFLICTS = 'conflicts'

export interface Range {
  readonly startkey: readonly unknown[]
  readonly endkey: readonly unknown[]
}

const PAGE = 500
/** The first question after many writes waits for the index. */
export const VIEW_TIMEOUT_MS = 300_000

/** A document of the list, and when it is due: ISO 8601, null for now. */
export interface Listed {
  readonly id: string
  readonly at: string | null
}

/** A range of `by_state`, or all of a view, a page at a time. What moves meanwhile may be missed or come twice. */
export async function* pages(
  database: Database,
  range: Range,
  signal?: AbortSignal,
  view = BY_STATE,
): AsyncGenerator<Listed[]> {
  let from: ViewQuery = { startkey: range.startkey }
  for (;;) {
    const query = { ...from, endkey: range.endkey, reduce: false, limit: PAGE }
    const { rows } = await database.view(DDOC, view, query, { signal, timeoutMs: VIEW_TIMEOUT_MS })
    yield rows.map(({ id, key }) => ({ id: id!, at: (key as (string | null)[])[3] ?? null }))
    const last = rows.at(-1)
    if (!last || rows.length < PAGE) return
    from = { startkey: last.key, startkey_docid: `${last.id!}\0` } // the next id there is: the last may have moved
  }
}
