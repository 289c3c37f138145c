import { expect, test } from 'vitest'
import { createDatabaseCounters } from '../../sidecar/databases/databases-feature.ts'

test('databases of one glob share their counters, and a named database has its own', () => {
  const { of, all } = createDatabaseCounters(['control', 'userdb-*', '*'])
  expect([...all.keys()]).toEqual(['control', 'userdb-*', '*'])
  expect(of('userdb-a')).toBe(of('userdb-b'))
  expect(of('userdb-a')).toBe(all.get('userdb-*'))
  expect(of('control')).toBe(all.get('control'))
  expect(of('other')).toBe(all.get('*'))
})

test('a named database has its own counters even if an earlier glob matches it', () => {
  const { of, all } = createDatabaseCounters(['*', 'control'])
  expect(of('control')).toBe(all.get('control'))
})

test('a name given twice has one set of counters', () => {
  expect(createDatabaseCounters(['control', 'control']).all.size).toBe(1)
})
