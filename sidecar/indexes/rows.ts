import { isoTime } from '../core/clock.ts'
import type { Entry } from './entry.ts'
import type { IndexKind } from './indexes-of.ts'

/** What is known of an index, as it is shown. */
export interface IndexRow {
  readonly db_name: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: IndexKind
  /** Of full text, which of the design document's; null for that of all views. */
  readonly index: string | null
  /** Changes that were not in it when it was last asked; null until then. */
  readonly lag_changes: number | null
  /** Since the first of them became known. */
  readonly lag_seconds: number
  readonly building: boolean
  /** What kept it from being built the last time. */
  readonly error: { readonly code: string; readonly reason: string; readonly at: string } | null
  /** When it was last asked, ISO 8601. */
  readonly checked_at: string | null
}

/** @param now milliseconds since the epoch */
export function rowOf(entry: Entry, now: number): IndexRow {
  const { index, lag, failure, checkedAt } = entry
  return {
    ...{
      db_name: index.database,
      ddoc: index.ddoc,
      kind: index.kind,
      index: index.kind === 'view' ? null : index.name,
    },
    lag_changes: entry.isFresh ? 0 : (lag ?? null),
    lag_seconds: entry.behindFor(now) / 1000,
    building: entry.job?.isRunning === true,
    error: failure ? { code: failure.code, reason: failure.reason, at: isoTime(failure.at) } : null,
    checked_at: checkedAt === undefined ? null : isoTime(checkedAt),
  }
}

/** Longer than it takes to build what has just changed. */
const A_WHILE_SECONDS = 10

/** Those to be told of one by one: they fail, or are behind for a while. The others are counted. */
export const isInTrouble = ({ error, lag_seconds }: IndexRow): boolean =>
  error !== null || lag_seconds >= A_WHILE_SECONDS

/** The worst first: those that fail, and of them and the others those that are longest behind. */
export const byTrouble = (one: IndexRow, other: IndexRow): number =>
  Number(other.error !== null) - Number(one.error !== null) ||
  other.lag_seconds - one.lag_seconds ||
  (nameOf(one) < nameOf(other) ? -1 : 1)

const nameOf = ({ db_name, ddoc, index }: IndexRow) => `${db_name}/${ddoc}/${index ?? ''}`
