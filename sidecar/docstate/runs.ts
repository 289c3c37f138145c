/**
 * Schedules and handlers for deleted documents. A run is a document of the control database, which goes from `run` to
 * `done` or `error`.
 */
import type { Machine } from '../../ddocs/machine.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Context, HandlerOptions } from './types.ts'

/** Options of a schedule. `docs/handler-options.md` is generated from this interface. */
export interface ScheduleOptions extends Pick<
  HandlerOptions,
  'timeout' | 'attempts' | 'backoff' | 'onLost' | 'priority' | 'version'
> {
  /** Five fields (minute, hour, day of the month, month, day of the week), or `@hourly`, `@daily` and the like. */
  readonly cron: string
  /**
   * IANA time zone, such as `Europe/Berlin`.
   *
   * @default 'UTC'
   */
  readonly timeZone?: string
  /**
   * What happens after due times without a run, because no worker ran: `'once'` makes one run for all of them, `'skip'`
   * makes none. A due time counts as missed one minute later.
   *
   * @default 'once'
   */
  readonly missed?: 'once' | 'skip'
}

/** One run of a schedule: a document of the control database. */
export interface ScheduledRun extends StoredDoc {
  readonly schedule: string
  /** The due time: ISO 8601, UTC. After several missed times, the last of them. */
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

/** A deleted document, with the fields that its last revision kept. */
export interface Tombstone extends StoredDoc {
  readonly _deleted: true
}

export type DeletionHandler<D extends object = Doc> = (deleted: D & Tombstone, ctx: Context) => Promise<void>

export type DeletionOptions = Omit<HandlerOptions, 'since' | 'shadow' | 'key'>

/** A handler for deleted documents of a type. */
export interface Deletion {
  readonly type: string
  readonly options: DeletionOptions
  readonly handler: DeletionHandler
}

/** The type of the run document for a deletion. */
export const deletionType = (type: string): string => `deletion/${type}`

const WEEK_MS = 7 * 24 * 3_600_000

/**
 * The states after `run` of run documents that the sidecar creates. They are kept for a week, failed ones for four
 * weeks, and deleted in `over`.
 */
export const AFTER_RUN = {
  done: { next: { over: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'over' } },
  over: { mode: 'safe', next: {} },
  error: { next: { run: 'sidecar', over: 'sidecar' }, timeout: { afterMs: 4 * WEEK_MS, next: 'over' } },
} as const satisfies Machine
