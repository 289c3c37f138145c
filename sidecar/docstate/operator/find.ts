import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isoTime } from '../../core/clock.ts'
import { pages } from '../finding/pages.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import { standingOf, STUCK, type Standing } from './standing.ts'
import type { StateCount } from './status.ts'

/** Which documents are meant: those of which all of this is true. */
export interface Filter {
  readonly type?: string | undefined
  /** The state they are in, or in which they failed. */
  readonly state?: string | undefined
  /** Default: those that are stuck. */
  readonly statuses?: readonly Status[] | undefined
  /** Of the failure. */
  readonly code?: string | undefined
  /** Milliseconds since they have stood so. */
  readonly olderThanMs?: number | undefined
}

export interface Found {
  readonly doc: StoredDoc
  readonly standing: Standing
}

export interface FindOptions {
  readonly database: Database
  /** What is there: `countStates`. */
  readonly counts: readonly StateCount[]
  readonly filter: Filter
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly signal?: AbortSignal | undefined
}

/** Of the counts, those among which documents of the filter may be. */
export function countsFor(counts: readonly StateCount[], { type, state, statuses = STUCK }: Filter): StateCount[] {
  return counts.filter(({ status, ...count }) => {
    if (!statuses.includes(status as Status)) return false
    const isOver = status === 'failed' || status === 'discarded'
    return (type === undefined || type === count.type) && (state === undefined || isOver || state === count.state)
  })
}

/** Pages of documents that the filter means, those first that have stood so for the longest where that is known. Throws `CouchError`. */
export async function* findDocuments(options: FindOptions): AsyncGenerator<Found[]> {
  const { database, counts, filter, now, signal } = options
  const until = filter.olderThanMs === undefined ? undefined : isoTime(now - filter.olderThanMs)
  for (const { type, state, status } of countsFor(counts, filter)) {
    const key = [type, state, status]
    const isKeyedBySince = status === 'parked' || status === 'claimed'
    const endkey = [...key, isKeyedBySince && until !== undefined ? until : {}]
    for await (const rows of pages(database, { startkey: key, endkey }, signal)) {
      const docs = await database.getMany(
        rows.map(({ id }) => id),
        { signal },
      )
      yield docs
        .map((doc) => ({ doc, standing: standingOf(doc) }))
        .filter(({ standing }) => standing.status === status && isMeant(standing, filter, until))
    }
  }
}

/** Of the document as it is now: it may have moved since the list was read. */
function isMeant(standing: Standing, { type, state, code }: Filter, until: string | undefined): boolean {
  if (type !== undefined && standing.type !== type) return false
  if (state !== undefined && standing.state !== state && standing.handledIn !== state) return false
  if (code !== undefined && standing.code !== code) return false
  return until === undefined || (standing.since !== undefined && standing.since <= until)
}
