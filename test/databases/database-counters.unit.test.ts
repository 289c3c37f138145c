import { expect, test } from 'vitest'
import { createDatabaseCounters } from '../../sidecar/databases/database-counters.ts'

test('databases of one glob are counted together, one that is named by itself', () => {
  const { of, all } = createDatabaseCounters(['control', 'userdb-*', '*'])
  expect([...all.keys()]).toEqual(['control', 'userdb-*', '*'])
  expect(of('userdb-a')).toBe(of('userdb-b'))
  expect(of('userdb-a')).toBe(all.get('userdb-*'))
  expect(of('control')).toBe(all.get('control'))
  expect(of('other')).toBe(all.get('*'))
})

test('a name that a glob matches, too, is still counted by itself, wherever it stands', () => {
  const { of, all } = createDatabaseCounters(['*', 'control'])
  expect(of('control')).toBe(all.get('control'))
})

test('a name that is given twice is one', () => {
  expect(createDatabaseCounters(['control', 'control']).all.size).toBe(1)
})
