/**
 * Schedules as state machines over documents of the control database. A schedule waits until it is due. Then a worker
 * creates the document of the run, and the schedule waits again. The id of a run contains its due time.
 *
 *     waiting ──(due_at)──> due ──> waiting
 *                            └─ makes ─> run ──> done ──(a week)──> over: deleted
 */
import type { Machines } from '../../ddocs/machine.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import { parseCron, type Cron } from '../core/cron.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { createControl } from '../docstate/control.ts'
import { forget, UNTIL_DONE } from '../docstate/handler-options.ts'
import { joinHandlers, type LoadedHandlers } from '../docstate/handlers.ts'
import { AFTER_RUN, type Schedule, type ScheduledRun } from '../docstate/runs.ts'
import type { Context } from '../docstate/types.ts'
import { runId, typeOf, waiting } from './schedule-doc.ts'

/** A due time that is this long ago was missed. */
export const MISSED_MS = 60_000

const machine = {
  waiting: { create: 'sidecar', next: { due: 'sidecar' }, timeout: { at: 'due_at', next: 'due' } },
  due: { mode: 'safe', next: { waiting: 'sidecar' } },
  run: { mode: 'unsafe', create: 'sidecar', next: { done: 'sidecar' } },
  ...AFTER_RUN,
} as const satisfies Machines[string]

/** Handlers in the control database for these schedules. */
export const scheduleTable = (schedules: readonly Schedule[], clock: Clock): LoadedHandlers =>
  joinHandlers(schedules.map((schedule) => tableOf(schedule, clock)))

export function cronOf({ cron, timeZone }: Pick<Schedule, 'cron' | 'timeZone'>): Cron {
  const parsed = parseCron(cron, timeZone)
  if (typeof parsed === 'string') throw new Error(`expected ${parsed}, got ${cron} in ${timeZone}`) // checked at load
  return parsed
}

function tableOf(schedule: Schedule, clock: Clock): LoadedHandlers {
  const { name, options, handler } = schedule
  const type = typeOf(name)
  const cron = cronOf(schedule)
  const table = createControl<Machines>({ [type]: machine })

  async function makeRun(doc: StoredDoc, ctx: Context) {
    const now = clock.now()
    const written = Date.parse(String(doc.due_at))
    // The last of several due times. A time that a person wrote counts, too.
    const due = Math.max(written, cron.lastUntil(now) ?? written)
    if (schedule.missed === 'once' || now - due < MISSED_MS) await create(runOf(schedule, due), ctx)
    return { ...doc, ...waiting(schedule, cron.nextAfter(Math.max(now, due))) }
  }

  table.safe(type, 'due', makeRun, UNTIL_DONE)
  table.unsafe(
    type,
    'run',
    async (run, ctx) => {
      await handler(run as unknown as ScheduledRun, ctx)
      return { ...run, state: 'done' }
    },
    { ...options, key: () => name },
  )
  table.safe(type, 'over', forget, UNTIL_DONE)
  return table
}

const runOf = ({ name }: Schedule, dueMs: number): Doc => {
  const due_at = isoTime(dueMs)
  return { _id: runId(name, due_at), type: typeOf(name), state: 'run', schedule: name, due_at }
}

/** Creates a run. Another worker, or an earlier attempt, may have created it already. */
async function create(run: Doc, ctx: Context): Promise<void> {
  try {
    await ctx.put(run)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown
  }
}
