import { expect, test } from 'vitest'
import { isAmong } from '../../sidecar/core/glob.ts'

test.each([
  ['userdb-*', 'userdb-1', true],
  ['userdb-*', 'userdb-', true],
  ['userdb-*', 'userdb', false],
  ['*', 'a/b', true],
  ['*', '_users', false],
  ['_users', '_users', true],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['*b*', 'abc', true],
  ['a*bc*c', 'abc', false],
  ['a*b*b', 'ab', false],
  ['a.c*', 'abc', false],
  ['a**c', 'ac', true],
  ['', '', true],
])('the glob %s matches the name %s: %s', (pattern, name, fits) => {
  expect(isAmong(name, [pattern])).toBe(fits)
})

/** All texts of these letters up to this length. */
const textsOf = (letters: string, length: number): string[] =>
  length === 0 ? [''] : ['', ...textsOf(letters, length - 1).flatMap((text) => [...letters].map((one) => one + text))]

test('a glob matches the same names as its regular expression', () => {
  const names = textsOf('ab', 5)
  for (const glob of textsOf('ab*', 5).filter((text) => text.includes('*'))) {
    const expression = new RegExp(`^${glob.replaceAll('*', '.*')}$`)
    expect(
      names.filter((name) => isAmong(name, [glob])),
      glob,
    ).toEqual(names.filter((name) => expression.test(name)))
  }
})

test('a glob of many stars is matched quickly', () => {
  const name = `${'a'.repeat(230)}!`
  expect(isAmong(name, ['a*'.repeat(200) + 'b'])).toBe(false)
  expect(isAmong(name, [`${'*a'.repeat(200)}*`])).toBe(true)
})
