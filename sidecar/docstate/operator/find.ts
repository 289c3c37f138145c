import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isoTime } from '../../core/clock.ts'
import { BY_STATE, pages, STUCK_VIEW, type Place } from '../finding/pages.ts'
import type { Status } from '../../../ddocs/lib/status.ts'
import { STUCK } from '../../../ddocs/lib/stuck.ts'
import { standingOf, type Standing } from './standing.ts'
import type { Counts, StateCount, StuckCount } from './count-documents.ts'

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
  /** In the list: `after`. */
  readonly place: Place
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
  /** Only what comes after that. */
  readonly after?: Place | undefined
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

/**
 * Pages of documents that the filter means, those first that have stood so for the longest where that is known. Throws
 * `CouchError`.
 */
export async function* findDocuments(options: FindOptions): AsyncGenerator<Found[]> {
  const { database, counted, filter, now, page: size, signal } = options
  const until = filter.olderThanMs === undefined ? undefined : isoTime(now - filter.olderThanMs)
  const ranges = countsFor(counted, filter).map((count) => rangeOf(count, until))
  const begun = ranges.findIndex(({ startkey }) => startkey.every((part, at) => part === options.after?.key[at]))
  let after = begun < 0 ? undefined : options.after // all of its range may be done with: then from the first
  for (const { status, view, ...range } of ranges.slice(Math.max(0, begun))) {
    for await (const rows of pages(database, range, signal, view, { size, after })) {
      const places = new Map(rows.map((row) => [row.id, { key: row.key, id: row.id }]))
      const docs = await database.getMany([...places.keys()], { signal })
      yield docs
        .map((doc) => ({ doc, standing: standingOf(doc), place: places.get(doc._id)! }))
        .filter(({ standing }) => standing.status === status && isMeant(standing, filter, until))
    }
    after = undefined
  }
}

/** Where documents that stand alike are listed. */
function rangeOf(count: StateCount | StuckCount, until: string | undefined) {
  const { type, state, status } = count
  const isInStuck = 'code' in count
  const startkey = [type, state, status, ...(isInStuck ? [count.code ?? null] : [])]
  const isKeyedBySince = isInStuck || status === 'claimed'
  const endkey = [...startkey, isKeyedBySince && until !== undefined ? until : {}]
  return { status, view: isInStuck ? STUCK_VIEW : BY_STATE, startkey, endkey }
}

/** Of the document as it is now: it may have moved since the list was read. */
function isMeant(standing: Standing, { type, state, code }: Filter, until: string | undefined): boolean {
  if (type !== undefined && standing.type !== type) return false
  if (state !== undefined && standing.state !== state && standing.handledIn !== state) return false
  if (code !== undefined && standing.code !== code) return false
  return until === undefined || (standing.since !== undefined && standing.since <= until)
}
