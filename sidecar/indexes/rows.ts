import { isoTime } from '../core/clock.ts'
import type { Entry } from './entry.ts'
import type { IndexKind } from './indexes-of.ts'

/** State of an index, as reported. */
export interface IndexRow {
  readonly db_name: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: IndexKind
  /** Name of a full-text index in the design document; null for the index of all views. */
  readonly index: string | null
  /** Changes that the index lacked at its last read; null before the first read. */
  readonly lag_changes: number | null
  /** Time since the first of these changes became known. */
  readonly lag_seconds: number
  readonly building: boolean
  /** Why its last build failed. */
  readonly error: { readonly code: string; readonly reason: string; readonly at: string } | null
  /** Time of the last read, ISO 8601. */
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

/** Longer than the build of a recent change takes. */
const A_WHILE_SECONDS = 10

/** Whether the index is reported by name: it fails, or is stale for a while. Others are only counted. */
export const isInTrouble = ({ error, lag_seconds }: IndexRow): boolean =>
  error !== null || lag_seconds >= A_WHILE_SECONDS

/** Sorts the worst first: failing indexes before others, and in each group the stalest first. */
export const byTrouble = (one: IndexRow, other: IndexRow): number =>
  Number(other.error !== null) - Number(one.error !== null) ||
  other.lag_seconds - one.lag_seconds ||
  (nameOf(one) < nameOf(other) ? -1 : 1)

const nameOf = ({ db_name, ddoc, index }: IndexRow) => `${db_name}/${ddoc}/${index ?? ''}`
