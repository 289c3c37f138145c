import { isoTime } from '../core/clock.ts'
import type { Doc } from '../couch/documents.ts'
import type { Schedule } from '../docstate/runs.ts'

/** Document of a schedule in the control database. */
export interface ScheduleDoc extends Doc {
  readonly type: string
  readonly state: string
  readonly cron: string
  readonly time_zone: string
  /** Next due time, ISO 8601, UTC. */
  readonly due_at: string
}

/** Type of a schedule and of its runs. Each schedule has its own type: only workers that have the schedule take it. */
export const typeOf = (name: string): string => `schedule/${name}`

export const scheduleId = (name: string): string => `schedule:${name}`

/** Id of a run. It is the same on all workers, so that a due time has one run. */
export const runId = (name: string, due_at: string): string => `${scheduleId(name)}:${due_at}`

export const waiting = ({ name, cron, timeZone }: Schedule, dueMs: number): ScheduleDoc => ({
  ...{ _id: scheduleId(name), type: typeOf(name), state: 'waiting' },
  ...{ cron, time_zone: timeZone, due_at: isoTime(dueMs) },
})
