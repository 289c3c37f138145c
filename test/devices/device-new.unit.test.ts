import { expect, test } from 'vitest'
import { inWords } from '../../sidecar/devices/device-new.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

test.each([
  [1 * SECOND, '1 second'],
  [90 * SECOND, '90 seconds'],
  [2 * MINUTE, '2 minutes'],
  [30 * MINUTE, '30 minutes'],
  [HOUR, '60 minutes'],
  [2 * HOUR, '2 hours'],
  [24 * HOUR, '24 hours'],
  [7 * 24 * HOUR, '168 hours'],
])('%i ms are written as %s', (ms, words) => {
  expect(inWords(ms)).toBe(words)
})
