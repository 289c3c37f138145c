import { expect, test } from 'vitest'
import { didYouMean } from '../../sidecar/core/nearest.ts'

test.each([
  ['nwe', 'new'], // swapped
  ['enw', 'new'],
  ['ne', 'new'], // one too few
  ['neww', 'new'], // one too many
  ['now', 'new'], // another
  ['invocied', 'invoiced'],
  ['inviocde', 'invoiced'], // swapped twice
])('%s was meant to be %s', (typed, meant) => {
  expect(didYouMean(typed, ['invoiced', 'new'])).toBe(` (did you mean ${meant}?)`)
})

test.each(['new', 'wen', 'n', '', 'old', 'ovinciedi'])('nothing is suggested for %j', (typed) => {
  expect(didYouMean(typed, ['invoiced', 'new'])).toBe('')
})
