import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createPeriodicRun } from '../../sidecar/core/periodic.ts'
import { CouchError } from '../../sidecar/couch/couch-errors.ts'
import { createManualClock } from '../support/manual-clock.ts'

const EVERY_MS = 60_000
/** A random value that leaves the interval unchanged; it varies by a tenth otherwise. */
const middle = () => 0.5

/** Consecutive runs of these durations; the last one repeats. A run with a negative duration fails after that time. */
function startSweeps(...tookMs: number[]) {
  const clock = createManualClock()
  const began: number[] = []
  async function sweep(signal: AbortSignal): Promise<void> {
    const ms = tookMs[Math.min(began.length, tookMs.length - 1)]!
    began.push(clock.ticks())
    await clock.sleep(Math.abs(ms), signal)
    if (ms < 0) throw new CouchError('unreachable', { request: 'GET /_all_dbs' })
  }
  const log = pino({ level: 'silent' })
  const sweeps = createPeriodicRun({ sweep, everyMs: () => EVERY_MS, clock, random: middle, log })
  const stopping = new AbortController()
  const running = sweeps.run(stopping.signal)
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  /** Milliseconds from one start to the next. */
  const between = () => began.slice(1).map((at, i) => at - began[i]!)
  return { clock, sweeps, began, between, signal: stopping.signal }
}

test('runs start at the interval', async () => {
  const { clock, between } = startSweeps(100)
  await clock.advance(4 * 61_000)
  expect(between().slice(0, 3)).toEqual([60_100, 60_100, 60_100])
})

test('long runs start less often, and take a tenth of the time', async () => {
  const { clock, between } = startSweeps(10_000)
  await clock.advance(4 * 111_000)
  expect(between().slice(0, 3)).toEqual([110_000, 110_000, 110_000])
})

test('a single long run does not delay the next one', async () => {
  const { clock, between } = startSweeps(100, 30_000, 100, 30_000, 30_000, 100)
  await clock.advance(800_000)
  expect(between().slice(0, 5)).toEqual([60_100, 90_000, 60_100, 90_000, 330_000])
})

test('a failed run is repeated soon, and does not count for the interval', async () => {
  const { clock, between } = startSweeps(100, -1, -30_000, 20_000, 100)
  await clock.advance(200_000)
  expect(between().slice(0, 4)).toEqual([60_100, 5001, 35_000, 80_000])
})

test('soon() starts another run at once, also after a current run', async () => {
  const { clock, sweeps, began } = startSweeps(100)
  await clock.advance(50)
  sweeps.soon()
  expect(began).toHaveLength(1)
  await clock.advance(60)
  expect(began).toHaveLength(2)
  await clock.advance(1000)
  sweeps.soon()
  await clock.advance(0)
  expect(began).toHaveLength(3)
})

test('finished runs leave no listeners at the long-lived signal', async () => {
  const { clock, began, signal } = startSweeps(100)
  const sizes = () =>
    Object.getOwnPropertySymbols(signal)
      .map((symbol) => (signal as unknown as Record<symbol, { size?: number } | undefined>)[symbol]?.size ?? 0)
      .reduce((sum, size) => sum + size, 0)
  await clock.advance(61_000)
  const before = sizes()
  await clock.advance(10 * 61_000)
  expect(began.length).toBeGreaterThan(10)
  expect(sizes()).toBe(before)
})

test('aligned runs start together, even if they take long or began late', async () => {
  const clock = createManualClock()
  const log = pino({ level: 'silent' })
  const stopping = new AbortController()
  const began: Record<string, number[]> = { short: [], long: [], late: [] }
  const start = (name: string, tookMs: number, random: () => number) => {
    const sweep = async () => {
      began[name]!.push(clock.ticks())
      await clock.sleep(tookMs, stopping.signal).catch(() => undefined)
    }
    return createPeriodicRun({ sweep, everyMs: () => EVERY_MS, alignedTo: 7, clock, random, log }).run(stopping.signal)
  }
  const running = [start('short', 10, () => 0), start('long', 5000, () => 1)]
  await clock.advance(20_000)
  running.push(start('late', 100, () => 0.3))
  await clock.advance(300_000)
  stopping.abort()
  await Promise.all(running)
  const due = (name: string) => began[name]!.slice(1).map((at) => (at - 7) % EVERY_MS)
  for (const name of Object.keys(began)) expect(due(name), name).toEqual(due(name).map(() => 0))
  expect(began.short!.length).toBeGreaterThan(4)
  expect(began.short).toEqual(expect.arrayContaining(began.long!.slice(1)))
})
