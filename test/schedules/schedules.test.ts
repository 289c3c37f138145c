/** Handlers that run at certain times: one run for each due time, with any number of workers. */
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { isoTime, systemClock, type Clock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import type { ScheduledRun, ScheduleOptions } from '../../sidecar/docstate/runs.ts'
import { scheduleTable } from '../../sidecar/schedules/schedule-table.ts'
import { keep } from '../../sidecar/schedules/schedules-feature.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startRig, stateOf } from '../docstate/rig.ts'

const ID = 'schedule:report'
const HOUR_MS = 3_600_000
const log = pino({ level: 'silent' })
const { signal } = new AbortController()

function reportOf(runs: ScheduledRun[], more: Partial<ScheduleOptions> = {}) {
  const control = createControl<Machines>({})
  control.schedule('report', { cron: '0 0 1 1 *', ...more }, async (run) => {
    runs.push(run)
    await Promise.resolve()
  })
  return control.schedules
}

interface Start {
  readonly runs?: ScheduledRun[]
  readonly options?: Partial<ScheduleOptions>
  readonly worker?: string
  readonly clock?: Clock
}

async function start(control: Database, { runs = [], options, worker = 'one', clock = systemClock }: Start = {}) {
  const schedules = reportOf(runs, options)
  const table = scheduleTable(schedules, clock)
  const keepAll = () => keep(schedules[0]!, { control, clock, log, signal })
  const rig = await startRig(control, () => undefined, {
    machines: table.machines,
    table,
    worker,
    clock,
    resyncMs: 500,
  })
  return { ...rig, runs, keepAll }
}

/** Changes the schedule as an admin does, while the engine runs. */
const change = (control: Database, fields: object) =>
  eventually(async () => void (await control.put({ ...(await control.get(ID)), ...fields })))

/** Sets the next due time. */
const planFor = (control: Database, ms: number) => change(control, { state: 'waiting', due_at: isoTime(ms) })

const nextOf = async (control: Database) => Date.parse(String((await control.get(ID)).due_at))
const runsIn = (control: Database) => control.withPrefix(`${ID}:`)

test('a schedule waits for its next due time, and each due time has one run', async () => {
  const control = await freshDb('schedules')
  const { runs, keepAll } = await start(control)
  await keepAll()
  const january = Date.UTC(new Date().getUTCFullYear() + 1, 0, 1)
  expect(await control.get(ID)).toMatchObject({ state: 'waiting', cron: '0 0 1 1 *', time_zone: 'UTC' })
  expect(await nextOf(control)).toBe(january)
  for (let round = 1; round <= 3; round++) {
    const due = Date.now() + 300
    await planFor(control, due)
    await eventually(() => expect(runs).toHaveLength(round))
    expect(runs.at(-1)).toMatchObject({ schedule: 'report', due_at: isoTime(due), state: 'run' })
    await eventually(async () => expect(await nextOf(control)).toBe(january))
  }
  await eventually(async () =>
    expect((await runsIn(control)).map(({ state }) => state)).toEqual(['done', 'done', 'done']),
  )
})

test('three workers make one run for each due time', async () => {
  const control = await freshDb('schedules')
  const runs: ScheduledRun[] = []
  const workers = [await start(control, { runs, worker: 'a' })]
  for (const worker of ['b', 'c']) workers.push(await start(control, { runs, worker }))
  await Promise.all(workers.map(({ keepAll }) => keepAll()))
  for (let round = 1; round <= 3; round++) {
    await planFor(control, Date.now() + 200)
    await eventually(() => expect(runs.length).toBeGreaterThanOrEqual(round))
    await eventually(async () => expect(await stateOf(control, ID)).toBe('waiting'))
  }
  await eventually(async () =>
    expect((await runsIn(control)).map(({ state }) => state)).toEqual(['done', 'done', 'done']),
  )
  expect(runs).toHaveLength(3)
})

test('missed due times make one run or none, as declared', async () => {
  for (const [missed, made] of [
    ['once', 1],
    ['skip', 0],
  ] as const) {
    const control = await freshDb('schedules')
    const options = { cron: '*/5 * * * *', missed }
    const before = await start(control, { options })
    await before.keepAll()
    await before.stop()
    await planFor(control, Date.now() - 3 * HOUR_MS)
    const early = Date.now()
    const { runs } = await start(control, { options, clock: { ...systemClock, now: () => lateIn(early) } })
    await eventually(async () => expect(await nextOf(control)).toBeGreaterThan(early))
    await eventually(async () => expect(await stateOf(control, ID)).toBe('waiting'))
    expect(await runsIn(control)).toHaveLength(made)
    await eventually(() => expect(runs).toHaveLength(made))
    if (made) expect(Date.parse(runs[0]!.due_at)).toBe(Math.floor(lateIn(early) / 300_000) * 300_000)
  }
})

/** Two minutes after a multiple of five: the last due time is missed by then. */
const lateIn = (ms: number) => Math.floor(ms / 300_000) * 300_000 + 120_000

test('a run that fails is retried, ends in error, and does not block later runs', async () => {
  const control = await freshDb('schedules')
  const runs: ScheduledRun[] = []
  const schedules = reportOf(runs, { attempts: 2, backoff: { baseMs: 20, capMs: 20 } }).map((one) => ({
    ...one,
    handler: async (run: ScheduledRun) => {
      runs.push(run)
      if (runs.length < 3) throw new Error('out of paper')
      await Promise.resolve()
    },
  }))
  const table = scheduleTable(schedules, systemClock)
  await startRig(control, () => undefined, { machines: table.machines, table, resyncMs: 500 })
  await keep(schedules[0]!, { control, clock: systemClock, log, signal })
  await planFor(control, Date.now() + 100)
  await eventually(async () => expect((await runsIn(control)).map(({ state }) => state)).toEqual(['error']))
  await planFor(control, Date.now() + 100)
  await eventually(async () => expect((await runsIn(control)).map(({ state }) => state)).toEqual(['error', 'done']))
})

test('a changed schedule is planned again, and a broken or deleted schedule document is repaired', async () => {
  const control = await freshDb('schedules')
  const first = await start(control)
  await first.keepAll()
  await first.stop()
  const changed = await start(control, { options: { cron: '0 0 1 7 *', timeZone: 'Asia/Tokyo' } })
  await changed.keepAll()
  expect(await control.get(ID)).toMatchObject({ cron: '0 0 1 7 *', time_zone: 'Asia/Tokyo' })
  expect(new Date(await nextOf(control)).toISOString()).toMatch(/^\d{4}-06-30T15:00/)
  const isMended = () =>
    eventually(async () => {
      await changed.keepAll() // at the next check, while the engine writes, too
      expect(await stateOf(control, ID)).toBe('waiting')
    })
  await change(control, { due_at: 'soon' })
  await eventually(async () => expect(await stateOf(control, ID)).toBe('error'))
  await isMended()
  await change(control, { _deleted: true })
  await isMended()
  expect(changed.runs).toEqual([])
})

test.each([
  [
    { cron: '0 6 * *' },
    "the schedule report: cron: expected the five fields of a cron expression, such as '0 6 * * *'",
  ],
  [{ cron: 6 }, "the schedule report: cron: expected a cron expression, such as '0 6 * * *', got 6"],
  [{}, "the schedule report: cron: expected a cron expression, such as '0 6 * * *', got undefined"],
  [{ cron: '0 6 * * *', timeZone: 'Mars' }, 'timeZone: expected a time zone of the IANA database'],
  [{ cron: '0 6 * * *', missed: 'all' }, "missed: expected 'once' or 'skip', got 'all'"],
  [{ cron: '0 6 * * *', concurrency: 3 }, 'there is no option concurrency; there are timeout'],
  [{ cron: '0 6 * * *', timezone: 'UTC' }, 'there is no option timezone (did you mean timeZone?)'],
])('invalid options of a schedule are refused: %j', (options, named) => {
  const control = createControl<Machines>({})
  const register = () => control.schedule('report', options as ScheduleOptions, () => Promise.resolve())
  expect(register).toThrow(named)
})

test('the name of a schedule is unique', () => {
  const control = createControl<Machines>({})
  const register = (name: string) => () => control.schedule(name, { cron: '@daily' }, () => Promise.resolve())
  register('report')()
  expect(register('report')).toThrow('two schedules named report: expected one')
  expect(register('my report')).toThrow(
    "expected a name of up to 100 letters, digits, '.', '-' and '_', got 'my report'",
  )
})
