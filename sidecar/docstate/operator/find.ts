import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isoTime } from '../../core/clock.ts'
import { BY_STATE, pages, STUCK_VIEW, type Place } from '../finding/pages.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import { STUCK } from '../../../ddocs/lib/stuck.ts'
import { standingOf, type Standing } from './standing.ts'
import type { Counts, StateCount, StuckCount } from './count-documents.ts'

/** Selects documents that match all of these fields. */
export interface Filter {
  readonly type?: string | undefined
  /** State of the documents, or the state in which they failed. */
  readonly state?: string | undefined
  /** Default: the statuses of stuck documents. */
  readonly statuses?: readonly Status[] | undefined
  /** Code of the failure. */
  readonly code?: string | undefined
  /** Minimum milliseconds in the status; a document with an `AGELESS` status never matches. */
  readonly olderThanMs?: number | undefined
}

/** Statuses of documents that do not record when the status began. */
export const AGELESS: readonly Status[] = ['ready', 'timeout']

export interface Found {
  readonly doc: StoredDoc
  readonly standing: Standing
  /** Position in the list, for `after`. */
  readonly place: Place
}

export interface FindOptions {
  readonly database: Database
  /** Result of `countDocuments`. */
  readonly counted: Counts
  readonly filter: Filter
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Documents in one read. Default 500. */
  readonly page?: number
  /** Only documents after this position. */
  readonly after?: Place | undefined
  readonly signal?: AbortSignal | undefined
}

/** Returns the counts that may include documents of the filter. */
export function countsFor({ counts, stuck }: Counts, filter: Filter): (StateCount | StuckCount)[] {
  const { type, state, statuses = STUCK, code } = filter
  const mayInclude = (count: StateCount) =>
    statuses.includes(count.status as Status) &&
    (type === undefined || type === count.type) &&
    (state === undefined || state === count.state || mayBeIn(state, count))
  return [
    ...stuck.filter((count) => mayInclude(count) && (code === undefined || code === count.code)),
    ...counts.filter((count) => !isStuck(count) && mayInclude(count)),
  ]
}

/**
 * Whether documents in `error` may match a state that is not their counted one. Failed ones are counted by the state in
 * which they failed, discarded ones are not.
 */
const mayBeIn = (state: string, { status }: StateCount): boolean =>
  status === 'discarded' || (status === 'failed' && state === 'error')
const isStuck = ({ status }: StateCount): boolean => STUCK.includes(status as Status)

/**
 * Yields pages of documents that match the filter. If known, the documents longest in their status come first. Throws
 * `CouchError`.
 */
export async function* findDocuments(options: FindOptions): AsyncGenerator<Found[]> {
  const { database, counted, filter, now, page: size, signal } = options
  const until = filter.olderThanMs === undefined ? undefined : isoTime(now - filter.olderThanMs)
  const ranges = countsFor(counted, filter).map((count) => rangeOf(count, until))
  const begun = ranges.findIndex(({ startkey }) => startkey.every((part, at) => part === options.after?.key[at]))
  let after = begun < 0 ? undefined : options.after // its range may be empty now: then from the first
  for (const { status, view, ...range } of ranges.slice(Math.max(0, begun))) {
    for await (const rows of pages(database, range, signal, view, { size, after })) {
      const places = new Map(rows.map((row) => [row.id, { key: row.key, id: row.id }]))
      const docs = await database.getMany([...places.keys()], { signal })
      yield docs
        .map((doc) => ({ doc, standing: standingOf(doc), place: places.get(doc._id)! }))
        .filter(({ standing }) => standing.status === status && matches(standing, filter, until))
    }
    after = undefined
  }
}

/** The range in which documents of one count are listed. */
function rangeOf(count: StateCount | StuckCount, until: string | undefined) {
  const { type, state, status } = count
  const isInStuck = 'code' in count
  const startkey = [type, state, status, ...(isInStuck ? [count.code ?? null] : [])]
  const isKeyedBySince = isInStuck || status === 'claimed'
  const endkey = [...startkey, isKeyedBySince && until !== undefined ? until : {}]
  return { status, view: isInStuck ? STUCK_VIEW : BY_STATE, startkey, endkey }
}

/** Checks the current document against the filter: it may have moved since the list was read. */
function matches(standing: Standing, { type, state, code }: Filter, until: string | undefined): boolean {
  if (type !== undefined && standing.type !== type) return false
  if (state !== undefined && standing.state !== state && standing.handledIn !== state) return false
  if (code !== undefined && standing.code !== code) return false
  return until === undefined || (standing.since !== undefined && standing.since <= until)
}
