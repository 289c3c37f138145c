import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { createPeriodicRun } from '../core/periodic.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Schedule } from '../docstate/runs.ts'
import type { Feature } from '../feature.ts'
import type { Platform } from '../platform.ts'
import { scheduleId, waiting } from './schedule-doc.ts'
import { cronOf } from './schedule-table.ts'

/** Interval of checks for missing or outdated documents of schedules. */
const EVERY_MS = 60_000

/** Keeps the document of each schedule as declared now. Handlers do the rest (`schedule-table.ts`). */
export function schedulesFeature({ config, couch, handlers, clock, random, log }: Platform): Feature {
  const { schedules } = handlers
  if (schedules.length === 0) return {}
  const control = couch.work.db(config.controlDb)
  const periodic = createPeriodicRun({
    async sweep(signal) {
      for (const schedule of schedules) await keep(schedule, { control, clock, log, signal })
    },
    everyMs: () => EVERY_MS,
    ...{ clock, random, log },
  })
  return { run: (signal) => periodic.run(signal) }
}

interface KeepOptions {
  readonly control: Database
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Creates the document of a schedule, or updates it. Throws `CouchError`. */
export async function keep(schedule: Schedule, { control, clock, log, signal }: KeepOptions): Promise<void> {
  const { name, cron, timeZone } = schedule
  const before = await control.find(scheduleId(name), {}, { signal })
  const isSame = before?.cron === cron && before.time_zone === timeZone
  if (before?.state === 'due' || (isSame && before.state === 'waiting')) return
  const doc = waiting(schedule, cronOf(schedule).nextAfter(clock.now()))
  try {
    await control.put({ ...doc, ...(before && { _rev: before._rev }) }, { signal })
    log.info(
      { schedule: name, cron, timeZone, dueAt: doc.due_at },
      before ? 'a schedule was changed' : 'a schedule begins',
    )
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // another worker was first, or it is due now: checked again
  }
}
