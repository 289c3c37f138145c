import { expect, test } from 'vitest'
import { oneLine, printable } from '../../sidecar/core/visible.ts'
import { shownJson } from '../../sidecar/cli/printable.ts'

/** Texts with their escaped form. Each comment names the effect on a terminal. */
const unseen = {
  '\u001b[2J': '\\u001b[2J', // clears the screen
  '\u009b2J': '\\u009b2J', // the same with a one-character escape
  '\rnothing is wrong': '\\u000dnothing is wrong', // overwrites the line
  '\b\u007f': '\\u0008\\u007f',
  'a\u202egnp.exe': 'a\\u202egnp.exe', // reverses the text
  '\u2066a\u2069': '\\u2066a\\u2069',
  'a\u2028b\u0085c': 'a\\u2028b\\u0085c',
  'a\u200bb\ufeff': 'a\\u200bb\\ufeff', // is invisible
  '\u{e0041}': '\\udb40\\udc41',
  '\ud800': '\\ud800',
}

test.each(Object.entries(unseen))('%j is shown escaped', (text, shown) => {
  expect(printable(text)).toBe(shown)
  expect(oneLine(text)).toBe(shown)
})

test.each(['ünïcode 日本語 עברית عربي', '👩‍🔬 می‌خواهم', '\\u001b', '"'])('the text %s is unchanged', (text) => {
  expect(printable(text)).toBe(text)
  expect(oneLine(text)).toBe(text)
})

test('a text keeps its line breaks, and a single line escapes them', () => {
  expect(printable('a\n\tb')).toBe('a\n\tb')
  expect(oneLine('a\nb\tc')).toBe('a\\nb\\u0009c')
})

test('printed JSON has the same value, or a value with escaped texts', () => {
  const value = { msg: 'a\u001b[2J\u009b\u202e\r\n"\\u001b\\', id: '\ud800' }
  const line = JSON.stringify(value)
  expect(JSON.parse(printable(line))).toEqual(value)
  expect(printable(line)).not.toMatch(/[\u009b\u202e]/)
  const shown = { msg: 'a\\u001b[2J\\u009b\\u202e\\r\n"\\u001b\\', id: '\\ud800' }
  expect(JSON.parse(shownJson(line))).toEqual(shown)
})
