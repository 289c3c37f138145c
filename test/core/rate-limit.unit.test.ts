import { setMaxListeners } from 'node:events'
import { expect, test } from 'vitest'
import { RateLimit, type Starts } from '../../sidecar/core/rate-limit.ts'
import { createManualClock } from '../support/manual-clock.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

/** A limit whose starts are all reserved from now on, and the number of sleeps. */
function createLimit(apartMs: number, count = 1_000_000) {
  const clock = createManualClock()
  let slept = 0
  const counting = {
    ...clock,
    sleep: (ms: number, signal: AbortSignal) => {
      slept += 1
      return clock.sleep(ms, signal)
    },
  }
  const reserve = async (): Promise<Starts> => ({ first: clock.now(), apartMs, count })
  return { clock, limit: new RateLimit(reserve, counting, never), slept: () => slept }
}

const settle = () => new Promise(setImmediate)

test('starts of the same millisecond begin together at once, without a timer for each', async () => {
  const { clock, limit, slept } = createLimit(0.001)
  let begun = 0
  for (let i = 0; i < 500; i++) void limit.enter(never).then(() => (begun += 1))
  await settle()
  expect([begun, slept()]).toEqual([500, 0])
  for (let i = 0; i < 400; i++) expect(limit.tryEnter()).toBe(true)
  await clock.advance(1)
  await settle()
  let more = 0
  while (more < 5000 && limit.tryEnter()) more += 1
  expect(more, 'at most the starts of two milliseconds').toBeLessThanOrEqual(2001)
  expect(more).toBeGreaterThanOrEqual(999)
})

test('tryEnter does not overtake waiting callers', async () => {
  const { clock, limit } = createLimit(10)
  const begun: number[] = []
  for (const one of [1, 2, 3]) void limit.enter(never).then(() => begun.push(one))
  await settle()
  expect(begun).toEqual([1])
  expect(limit.tryEnter()).toBe(false)
  for (const _ of [2, 3]) {
    await clock.advance(10)
    await settle()
  }
  expect(begun).toEqual([1, 2, 3])
  expect(limit.tryEnter()).toBe(false)
  await clock.advance(10)
  expect(limit.tryEnter()).toBe(true)
  expect(limit.tryEnter()).toBe(false)
})

test('each reserved start is used once, and no start follows the last one', async () => {
  const { clock, limit } = createLimit(5, 3)
  await limit.enter(never)
  await clock.advance(14)
  let begun = 1
  while (limit.tryEnter()) begun += 1
  expect(begun).toBeLessThanOrEqual(3)
  await clock.advance(1000)
  expect(limit.tryEnter()).toBe(false)
})
