/**
 * Databases that match a glob. Each is visited when it changes: events start a visit early, the sweep guarantees it.
 * See docs/designs/many-databases.md.
 */
import { isAmong } from '../core/glob.ts'
import { together } from '../core/together.ts'
import { withTimeout } from '../core/timeout.ts'
import { createSurvey, type Survey } from '../couch/survey.ts'
import { createPeriodicRun } from '../core/periodic.ts'
import type { Partitioning } from '../workers/partitioning.ts'
import { createTracked, forget, type TrackedDatabase } from './tracked-database.ts'
import { WHO_IS_THERE_MS } from './follow.ts'
import { workOut, type JobOf } from './jobs.ts'
import { createSweep } from './sweep.ts'
import { Visits, type VisitsOptions } from './visits.ts'

export interface VisitedDatabasesOptions extends Omit<
  VisitsOptions,
  'trackedDatabases' | 'jobOf' | 'breaks' | 'onEnd' | 'sweepMs'
> {
  /** Globs. */
  readonly databases: readonly string[]
  /** Names of followed databases, which are not visited. */
  readonly except: ReadonlySet<string>
  readonly jobOf: JobOf
  /** Lists and reads all databases. Default: one that uses `couch`. */
  readonly survey?: Survey
  /** Common start of the process's periodic runs, in ticks (`core/periodic.ts`). */
  readonly alignedTo?: number
  readonly partitioning: Partitioning
  /** Whether database events arrive; without events, sweeps are more frequent. */
  readonly hasDatabaseEvents: () => boolean
  /** Resolves when the handler settings are known, so that no paused handler starts. Default: at once. */
  readonly whenSet?: (signal: AbortSignal) => Promise<void>
  /** Interval of sweeps, milliseconds: with events, and without. Default 60,000 and 5000. */
  readonly lookAgainMs?: readonly [withEvents: number, withoutEvents: number]
}

export interface VisitCounts {
  /** Databases that this worker visits. */
  readonly databases: number
  /** Open visits. */
  readonly open: number
  /** Databases that wait for a visit. */
  readonly waiting: number
  /** Visits that have ended. */
  readonly visits: number
  /** Requests for changes. */
  readonly reads: number
  /** Databases whose changes only a sweep found. */
  readonly swept: number
}

export interface VisitedDatabases {
  /** Runs until the signal aborts and all documents are saved or released. Throws at a second call. */
  readonly run: (signal: AbortSignal) => Promise<void>
  readonly counts: () => VisitCounts
}

export function createVisitedDatabases(options: VisitedDatabasesOptions): VisitedDatabases {
  const { couch, databases, except, partitioning, events, hasDatabaseEvents, clock, random, log } = options
  const { lookAgainMs = [60_000, 5000] } = options
  const trackedDatabases = new Map<string, TrackedDatabase>()
  const jobOf = workOut(options.jobOf)
  /** Followed databases whose feed is broken. */
  const broken = new Set<string>()
  let breaks = 0
  let swept = 0
  let started = false

  const visits = new Visits({
    ...options,
    trackedDatabases,
    jobOf,
    breaks: () => breaks,
    onEnd(tracked, again) {
      if (tracked.isLeft) trackedDatabases.delete(tracked.name)
      else if (again) queueNamed(tracked.name)
    },
  })

  function isOurs(name: string): boolean {
    if (except.has(name) || !isAmong(name, databases)) return false
    const partition = partitioning.whole(name)
    return jobOf(name).typesAndStates.some((each) => partition.isOurs(each, name))
  }

  function trackedOf(name: string): TrackedDatabase {
    const tracked = trackedDatabases.get(name) ?? createTracked(name)
    tracked.isLeft = false // the database has returned before its visit ended
    trackedDatabases.set(name, tracked)
    return tracked
  }

  function queueNamed(name: string): void {
    if (isOurs(name)) visits.queueNamed(trackedOf(name))
  }

  /** Discards earlier readings: the server may have restarted with older copies of the databases. */
  function doubt(): void {
    breaks += 1
    for (const { known } of trackedDatabases.values()) known.reading = undefined
  }

  /** Starts again with a database that may have been replaced, or restored from an older copy. */
  function renew(name: string): void {
    const tracked = trackedDatabases.get(name)
    if (tracked) forget(tracked)
    tracked?.visit?.leave(new Error('the database is another one')) // another visit follows
    queueNamed(name)
  }

  function leave(tracked: TrackedDatabase): void {
    tracked.isLeft = true
    options.countsOf(tracked.name).undeclared.delete(tracked.name)
    visits.remove(tracked)
    if (!tracked.visit) trackedDatabases.delete(tracked.name)
  }

  /** Visits the databases in which a resumed handler has left documents. */
  function resume(): void {
    const paused = options.limits?.paused
    for (const tracked of trackedDatabases.values()) {
      if (![...(tracked.known.paused ?? [])].some((name) => !paused?.has(name))) continue
      tracked.known.isResumed = true
      visits.find(tracked)
    }
  }

  const sweep = createSweep({
    survey: options.survey ?? createSurvey(couch),
    trackedDatabases,
    trackedOf,
    isOurs,
    renew,
    leave,
    log,
    find(tracked) {
      if (visits.find(tracked)) swept += 1
    },
  })
  const sweeps = createPeriodicRun({
    ...{ alignedTo: options.alignedTo, clock, random, log, sweep },
    everyMs: () => lookAgainMs[hasDatabaseEvents() ? 0 : 1],
  })

  return {
    async run(signal) {
      if (started) throw new Error('the visits were started twice')
      started = true
      if (databases.length === 0) return
      await withTimeout(clock, WHO_IS_THERE_MS, partitioning.known, signal).catch(() => undefined)
      await options.whenSet?.(signal).catch(() => undefined)
      events.subscribe('database:created', ({ event }) => renew(event.database), { signal })
      events.subscribe('database:updated', ({ event }) => queueNamed(event.database), { signal })
      events.subscribe(
        'feed:broken',
        ({ event }) => {
          if (!except.has(event.database)) return
          broken.add(event.database)
          doubt()
        },
        { signal },
      )
      events.subscribe(
        'feed:connected',
        ({ event }) => {
          if (!broken.delete(event.database)) return
          doubt()
          sweeps.soon()
        },
        { signal },
      )
      partitioning.onChange(() => sweeps.soon(), signal)
      options.limits?.onResumed(resume, signal)
      await together([(until) => visits.run(until), (until) => sweeps.run(until)], signal)
    },
    counts: () => ({
      databases: trackedDatabases.size,
      open: visits.open,
      waiting: visits.waiting,
      swept,
      ...visits.counts,
    }),
  }
}
