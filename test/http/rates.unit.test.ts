import { expect, test } from 'vitest'
import { createRates } from '../../sidecar/http/rates.ts'
import { createManualClock } from '../support/manual-clock.ts'

test('what was not used gathers up to a minute’s worth, and comes back steadily', async () => {
  const clock = createManualClock()
  const rates = createRates({ perMinute: 60, clock })
  expect(rates.take('a', 60)).toBe(0)
  expect(rates.take('a')).toBe(1000)
  await clock.advance(250)
  expect(rates.take('a')).toBe(750)
  await clock.advance(750)
  expect(rates.take('a')).toBe(0)
  expect(rates.take('b', 60)).toBe(0)
  await clock.advance(600_000)
  expect(rates.take('a', 60)).toBe(0)
  expect(rates.take('a')).toBe(1000)
})

test('more than one client may have costs the others nothing', () => {
  const rates = createRates({ perMinute: 10, clock: createManualClock() })
  for (let count = 0; count < 1000; count++) rates.take('greedy')
  for (let client = 0; client < 19; client++) expect(rates.take(`modest ${client}`, 10)).toBe(0)
  expect(rates.take('the next', 1)).toBeGreaterThan(0)
})

test('of endlessly many clients some thousands are remembered, those that came last', () => {
  const rates = createRates({ perMinute: 10_000, clock: createManualClock() })
  expect(rates.take('first', 10_000)).toBe(0)
  expect(rates.take('second', 10_000)).toBe(0)
  for (let client = 0; client < 9_998; client++) rates.take(`2001:db8:${client}::/64`)
  expect(rates.take('first')).toBeGreaterThan(0)
  rates.take('one more')
  expect(rates.take('second')).toBe(0)
  expect(rates.take('first')).toBeGreaterThan(0)
})
