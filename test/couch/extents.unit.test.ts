/** The extent of a database, from the answering shard copies. These vary, and each counts its own changes. */
import { expect, test } from 'vitest'
import { furthest, hasNews, type Extent } from '../../sidecar/couch/shard-seqs.ts'

const at = (files: Record<string, number>): Extent => ({
  changes: Object.values(files).reduce((sum, one) => sum + one, 0),
  files,
})

test('a change is not hidden by another copy with a lower count, or by a copy not seen before', () => {
  const done = at({ first: 30, second: 30 })
  expect(hasNews(at({ first: 31, second: 29 }), done), 'the totals are equal').toBe(true)
  expect(hasNews(at({ first: 30, other: 30 }), done)).toBe(true)
  expect(hasNews(at({ first: 30, other: 12 }), done)).toBe(true)
})

test('a database has no news if each answering file is at its known count', () => {
  const done = at({ first: 30, second: 30, other: 12 })
  expect(hasNews(at({ first: 30, other: 12 }), done)).toBe(false)
  expect(hasNews(at({ first: 30, second: 30 }), done)).toBe(false)
  expect(hasNews(at({ first: 29, second: 30 }), done), 'a copy that lacks a known change').toBe(true)
})

test('without known files, the total number of changes decides', () => {
  const done: Extent = { changes: 7 }
  expect(hasNews({ changes: 7 }, done)).toBe(false)
  expect(hasNews({ changes: 8 }, done)).toBe(true)
  expect(hasNews({ changes: 6 }, done)).toBe(true)
})

test('merging two extents keeps the higher count of each file', () => {
  expect(furthest({ first: 3, second: 9 }, { first: 5, second: 8, other: 1 })).toEqual({
    first: 5,
    second: 9,
    other: 1,
  })
  expect(furthest(undefined, { first: 1 })).toEqual({ first: 1 })
})
