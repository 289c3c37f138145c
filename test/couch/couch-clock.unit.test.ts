import pino from 'pino'
import { expect, test } from 'vitest'
import type { Clock } from '../../sidecar/core/clock.ts'
import { createCouchClock } from '../../sidecar/couch/couch-clock.ts'

const HOUR_MS = 3_600_000
const START = Date.UTC(2030, 0, 1)

/** A machine whose clock is wrong by `error`, and a CouchDB whose clock is right. */
function start(error: number) {
  let passed = 0
  const machine = { error }
  const lines: { differenceMs: number }[] = []
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void lines.push(JSON.parse(line) as { differenceMs: number }) },
  )
  const system: Clock = {
    now: () => START + passed + machine.error,
    ticks: () => passed,
    sleep: () => Promise.resolve(),
  }
  const clock = createCouchClock(system, log)
  const answer = (date: string, took: number) => {
    const sentAt = passed
    passed += took
    clock.receive(date, sentAt)
  }
  return {
    ...{ clock, lines, machine, answer },
    passed: () => passed,
    pass: (ms: number) => void (passed += ms),
    /** The current error of the corrected clock. */
    error: () => clock.now() - (START + passed),
    /** CouchDB answers in the middle of the request's duration. */
    couchAnswers: (took = 4) => answer(new Date(START + passed + took / 2).toUTCString(), took),
  }
}

test.each([0, 200, -200])('a clock that is off by %s ms is not corrected', (error) => {
  const rig = start(error)
  for (let count = 0; count < 5000; count++) {
    rig.couchAnswers()
    rig.pass(7)
  }
  expect(Math.abs(rig.error())).toBeLessThanOrEqual(Math.abs(error))
  expect(rig.lines).toEqual([])
})

test.each([4, 12_000])(
  'a right clock is not corrected by dates that CouchDB set a second ago (answers take %s ms)',
  (took) => {
    const rig = start(0)
    for (let count = 0; count < 1000; count++) {
      const setAt = Math.floor((START + rig.passed() - 999) / 1000) * 1000 + 999
      rig.answer(new Date(setAt).toUTCString(), took)
      rig.pass(7)
    }
    expect(rig.error()).toBe(0)
  },
)

test.each([HOUR_MS, -HOUR_MS, 40_000])(
  'a clock that is wrong by %s ms is corrected after two answers, and logged once',
  (error) => {
    const rig = start(error)
    rig.couchAnswers()
    expect(rig.error()).toBe(error)
    rig.couchAnswers()
    expect(rig.error()).toBeGreaterThan(-1100)
    for (let count = 0; count < 5000; count++) {
      expect(rig.error(), 'the corrected clock is never fast').toBeLessThanOrEqual(0)
      rig.couchAnswers(11)
      rig.pass(13)
    }
    expect(rig.error()).toBeGreaterThan(-30) // each new second improves the estimate
    expect(rig.lines).toMatchObject([{ differenceMs: expect.closeTo(error, -4) as number }])
  },
)

test('jumps of the machine’s clock have no effect', () => {
  const rig = start(0)
  rig.couchAnswers()
  rig.machine.error = HOUR_MS
  expect(rig.error()).toBe(0)
  rig.couchAnswers()
  rig.couchAnswers()
  expect(Math.abs(rig.error())).toBeLessThan(1100)
})

test('answers that take a minute do not correct a clock that is half a minute off', () => {
  const rig = start(30_000)
  for (let count = 0; count < 10; count++) rig.couchAnswers(60_000)
  expect(rig.error()).toBe(30_000)
})

test.each(['Tue, 01 Jan 2030 05:00:00 GMT', 'yesterday', ''])(
  'a single answer does not correct the clock: %s',
  (date) => {
    const rig = start(0)
    for (let count = 0; count < 10; count++) {
      rig.answer(date, 4)
      rig.couchAnswers()
    }
    expect(rig.error()).toBe(0)
  },
)
