import { expect, test } from 'vitest'
import { oneLine, printable } from '../../sidecar/core/visible.ts'
import { shownJson } from '../../sidecar/cli/printable.ts'

/** What each would do on a terminal stands beside it. */
const unseen = {
  '\u001b[2J': '\\u001b[2J', // clears it
  '\u009b2J': '\\u009b2J', // the same, in one character
  '\rnothing is wrong': '\\u000dnothing is wrong', // writes over the line
  '\b\u007f': '\\u0008\\u007f',
  'a\u202egnp.exe': 'a\\u202egnp.exe', // turns it around
  '\u2066a\u2069': '\\u2066a\\u2069',
  'a\u2028b\u0085c': 'a\\u2028b\\u0085c',
  'a\u200bb\ufeff': 'a\\u200bb\\ufeff', // is not there
  '\u{e0041}': '\\udb40\\udc41',
  '\ud800': '\\ud800',
}

test.each(Object.entries(unseen))('%j is shown as what it is', (text, shown) => {
  expect(printable(text)).toBe(shown)
  expect(oneLine(text)).toBe(shown)
})

test.each(['ünïcode 日本語 עברית عربي', '👩‍🔬 می‌خواهم', '\\u001b', '"'])('%s stays', (text) => {
  expect(printable(text)).toBe(text)
  expect(oneLine(text)).toBe(text)
})

test('a text has lines, one line has none', () => {
  expect(printable('a\n\tb')).toBe('a\n\tb')
  expect(oneLine('a\nb\tc')).toBe('a\\nb\\u0009c')
})

test('JSON is the same value, or one whose texts are shown', () => {
  const value = { msg: 'a\u001b[2J\u009b\u202e\r\n"\\u001b\\', id: '\ud800' }
  const line = JSON.stringify(value)
  expect(JSON.parse(printable(line))).toEqual(value)
  expect(printable(line)).not.toMatch(/[\u009b\u202e]/)
  const shown = { msg: 'a\\u001b[2J\\u009b\\u202e\\r\n"\\u001b\\', id: '\\ud800' }
  expect(JSON.parse(shownJson(line))).toEqual(shown)
})
