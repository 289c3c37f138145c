import { expect, test } from 'vitest'
import { Histogram } from '../../sidecar/core/histogram.ts'

test('each value counts in the first bucket that holds it, and in all larger ones', () => {
  const histogram = new Histogram()
  for (const ms of [0, 1, 1.5, 5, 400, 60_000, 60_001]) histogram.add(ms)
  expect(histogram.upTo().map(({ ms, count }) => `${ms}: ${count}`)).toEqual([
    ...['1: 2', '5: 4', '25: 4', '100: 4', '500: 5', '2500: 5', '10000: 5', '60000: 6', 'Infinity: 7'],
  ])
  expect(histogram.sumMs).toBe(0 + 1 + 1.5 + 5 + 400 + 60_000 + 60_001)
})

test('two histograms share no state', () => {
  const [first, second] = [new Histogram(), new Histogram()]
  first.add(3)
  expect(second.upTo().at(-1)).toEqual({ ms: Infinity, count: 0 })
})
