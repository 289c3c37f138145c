import { expect, test } from 'vitest'
import { createRateLimiter } from '../../sidecar/http/token-bucket.ts'
import { createManualClock } from '../support/manual-clock.ts'

test('unused tokens accumulate up to a minute’s worth, and refill steadily', async () => {
  const clock = createManualClock()
  const limiter = createRateLimiter({ perMinute: 60, clock })
  expect(limiter.take('a', 60)).toBe(0)
  expect(limiter.take('a')).toBe(1000)
  await clock.advance(250)
  expect(limiter.take('a')).toBe(750)
  await clock.advance(750)
  expect(limiter.take('a')).toBe(0)
  expect(limiter.take('b', 60)).toBe(0)
  await clock.advance(600_000)
  expect(limiter.take('a', 60)).toBe(0)
  expect(limiter.take('a')).toBe(1000)
})

test('requests of one client beyond its limit cost the others nothing', () => {
  const limiter = createRateLimiter({ perMinute: 10, clock: createManualClock() })
  for (let count = 0; count < 1000; count++) limiter.take('greedy')
  for (let client = 0; client < 19; client++) expect(limiter.take(`modest ${client}`, 10)).toBe(0)
  expect(limiter.take('the next', 1)).toBeGreaterThan(0)
})

test('the limiter remembers only the last thousands of clients', () => {
  const limiter = createRateLimiter({ perMinute: 10_000, clock: createManualClock() })
  expect(limiter.take('first', 10_000)).toBe(0)
  expect(limiter.take('second', 10_000)).toBe(0)
  for (let client = 0; client < 9_998; client++) limiter.take(`2001:db8:${client}::/64`)
  expect(limiter.take('first')).toBeGreaterThan(0)
  limiter.take('one more')
  expect(limiter.take('second')).toBe(0)
  expect(limiter.take('first')).toBeGreaterThan(0)
})
