import { expect, test } from 'vitest'
import { fullJitter } from '../../sidecar/core/backoff.ts'

const backoff = { baseMs: 100, capMs: 1000 }

test('the backoff is a random time below a ceiling that doubles up to the cap', () => {
  const almostOne = () => 0.999999
  expect([1, 2, 3, 4, 5, 50].map((attempt) => fullJitter(backoff, attempt, almostOne))).toEqual([
    100, 200, 400, 800, 1000, 1000,
  ])
  expect(fullJitter(backoff, 3, () => 0.5)).toBe(200)
})

test('the backoff is never short enough for a hot loop', () => {
  expect(fullJitter(backoff, 1, () => 0)).toBe(50)
})
