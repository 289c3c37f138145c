import { isoTime } from '../core/clock.ts'
import type { Doc } from '../couch/documents.ts'
import type { Schedule } from '../docstate/runs.ts'

/** A schedule as it stands in the control database. */
export interface ScheduleDoc extends Doc {
  readonly type: string
  readonly state: string
  readonly cron: string
  readonly time_zone: string
  /** When it is due next: ISO 8601, UTC. */
  readonly due_at: string
}

/** Of the schedule and of its runs: each schedule is another type, which only workers take that have it. */
export const typeOf = (name: string): string => `schedule/${name}`

export const scheduleId = (name: string): string => `schedule:${name}`

/** The same for all workers, so that a due time has one run. */
export const runId = (name: string, due_at: string): string => `${scheduleId(name)}:${due_at}`

export const waiting = ({ name, cron, timeZone }: Schedule, dueMs: number): ScheduleDoc => ({
  ...{ _id: scheduleId(name), type: typeOf(name), state: 'waiting' },
  ...{ cron, time_zone: timeZone, due_at: isoTime(dueMs) },
})
