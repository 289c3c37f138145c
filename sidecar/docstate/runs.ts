/**
 * What handlers do at certain times, and about deleted documents. A run of these is a document of the control database, which goes from `run`
 * to `done`, or to `error`.
 */
import type { Machine } from '../../ddocs/machine.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Context, HandlerOptions } from './types.ts'

/** When a schedule is due, and how its runs go. `docs/handler-options.md` is made from this. */
export interface ScheduleOptions extends Pick<
  HandlerOptions,
  'timeout' | 'attempts' | 'backoff' | 'onLost' | 'priority' | 'version'
> {
  /** Five fields (minute, hour, day of the month, month, day of the week), or `@hourly`, `@daily` and the like. */
  readonly cron: string
  /**
   * Of the IANA database, such as `Europe/Berlin`.
   *
   * @default 'UTC'
   */
  readonly timeZone?: string
  /**
   * What becomes of times that were due while no worker was there: `'once'` makes one run of them all, `'skip'` none. A time is
   * missed a minute after it.
   *
   * @default 'once'
   */
  readonly missed?: 'once' | 'skip'
}

/** One run of a schedule: a document of the control database. */
export interface ScheduledRun extends StoredDoc {
  readonly schedule: string
  /** The time that was due: ISO 8601, UTC. Of several that were missed the last. */
  readonly due_at: string
}

export type ScheduleHandler = (run: ScheduledRun, ctx: Context) => Promise<void>

export interface Schedule {
  readonly name: string
  readonly cron: string
  readonly timeZone: string
  readonly missed: 'once' | 'skip'
  readonly options: HandlerOptions
  readonly handler: ScheduleHandler
}

/** A document that was deleted: what its last revision kept. */
export interface Tombstone extends StoredDoc {
  readonly _deleted: true
}

export type DeletionHandler<D extends object = Doc> = (deleted: D & Tombstone, ctx: Context) => Promise<void>

export type DeletionOptions = Omit<HandlerOptions, 'since' | 'shadow' | 'key'>

/** What is to be done where documents of a type are deleted. */
export interface Deletion {
  readonly type: string
  readonly options: DeletionOptions
  readonly handler: DeletionHandler
}

/** The type of the document that a deletion makes. */
export const deletionType = (type: string): string => `deletion/${type}`

const WEEK_MS = 7 * 24 * 3_600_000

/**
 * What follows the state `run` of documents that the sidecar itself makes for a run: they are kept for a week, or four if they have failed, and
 * deleted in `over`.
 */
export const AFTER_RUN = {
  done: { next: { over: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'over' } },
  over: { mode: 'safe', next: {} },
  error: { next: { run: 'sidecar', over: 'sidecar' }, timeout: { afterMs: 4 * WEEK_MS, next: 'over' } },
} as const satisfies Machine
