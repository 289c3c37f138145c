import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isoTime } from '../../core/clock.ts'
import { BY_STATE, pages, STUCK_VIEW } from '../finding/pages.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import { STUCK } from '../../../ddocs/lib/stuck.ts'
import { standingOf, type Standing } from './standing.ts'
import type { Counts, StateCount, StuckCount } from './status.ts'

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
  /** What is there: `countDocuments`. */
  readonly counted: Counts
  readonly filter: Filter
  /** Milliseconds since the epoch. */
  readonly now: number
  /** How many are read together. Default 500. */
  readonly page?: number
  readonly signal?: AbortSignal | undefined
}

/** Of what was counted, that among which documents of the filter may be. */
export function countsFor({ counts, stuck }: Counts, filter: Filter): (StateCount | StuckCount)[] {
  const { type, state, statuses = STUCK, code } = filter
  const areMeant = (count: StateCount) =>
    statuses.includes(count.status as Status) &&
    (type === undefined || type === count.type) &&
    (state === undefined || state === count.state || mayBeIn(state, count))
  return [
    ...stuck.filter((count) => areMeant(count) && (code === undefined || code === count.code)),
    ...counts.filter((count) => !isStuck(count) && areMeant(count)),
  ]
}

/** Of those in `error`, the state in which they failed is counted, or (discarded) is not. */
const mayBeIn = (state: string, { status }: StateCount): boolean =>
  status === 'discarded' || (status === 'failed' && state === 'error')
const isStuck = ({ status }: StateCount): boolean => STUCK.includes(status as Status)

/** Pages of documents that the filter means, those first that have stood so for the longest where that is known. Throws `CouchError`. */
export async function* findDocuments(options: FindOptions): AsyncGenerator<Found[]> {
  const { database, counted, filter, now, page, signal } = options
  const until = filter.olderThanMs === undefined ? undefined : isoTime(now - filter.olderThanMs)
  for (const count of countsFor(counted, filter)) {
    const { status } = count
    const key = [count.type, count.state, status, ...('code' in count ? [count.code ?? null] : [])]
    const isKeyedBySince = 'code' in count || status === 'claimed'
    const endkey = [...key, isKeyedBySince && until !== undefined ? until : {}]
    const view = 'code' in count ? STUCK_VIEW : BY_STATE
    for await (const rows of pages(database, { startkey: key, endkey }, signal, view, page)) {
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
