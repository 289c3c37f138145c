import { expect, test } from 'vitest'
import { Durations } from '../../sidecar/core/durations.ts'

test('each counts in the first range that it fits into, and in all that are longer', () => {
  const durations = new Durations()
  for (const ms of [0, 1, 1.5, 5, 400, 60_000, 60_001]) durations.add(ms)
  expect(durations.upTo().map(({ ms, count }) => `${ms}: ${count}`)).toEqual([
    ...['1: 2', '5: 4', '25: 4', '100: 4', '500: 5', '2500: 5', '10000: 5', '60000: 6', 'Infinity: 7'],
  ])
  expect(durations.sumMs).toBe(0 + 1 + 1.5 + 5 + 400 + 60_000 + 60_001)
})

test('two of them have nothing in common', () => {
  const [first, second] = [new Durations(), new Durations()]
  first.add(3)
  expect(second.upTo().at(-1)).toEqual({ ms: Infinity, count: 0 })
})
