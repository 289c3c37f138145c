import { expect, test } from 'vitest'
import { isAmong } from '../../sidecar/core/glob.ts'

test.each([
  ['control', ['control'], true],
  ['orders', ['control'], false],
  ['userdb-1', ['control', 'userdb-*'], true],
  ['userdb-a/b+c', ['userdb-*'], true],
  ['xuserdb-1', ['userdb-*'], false],
  ['_users', ['*'], false],
  ['_users', ['*', '_users'], true],
])('%s is served by %j: %s', (name, patterns, served) => {
  expect(isAmong(name, patterns)).toBe(served)
})
