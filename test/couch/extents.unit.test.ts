/** How far a database is, told by the copies that answer: of a cluster each time by others, which count each for itself. */
import { expect, test } from 'vitest'
import { furthest, hasNews, type Extent } from '../../sidecar/couch/shard-seqs.ts'

const at = (files: Record<string, number>): Extent => ({
  changes: Object.values(files).reduce((sum, one) => sum + one, 0),
  files,
})

test('another copy that counts less does not hide a change, nor one that has not been asked', () => {
  const done = at({ first: 30, second: 30 })
  expect(hasNews(at({ first: 31, second: 29 }), done), 'as many in all').toBe(true)
  expect(hasNews(at({ first: 30, other: 30 }), done)).toBe(true)
  expect(hasNews(at({ first: 30, other: 12 }), done)).toBe(true)
})

test('there is nothing new where each file that answers is as far as it was', () => {
  const done = at({ first: 30, second: 30, other: 12 })
  expect(hasNews(at({ first: 30, other: 12 }), done)).toBe(false)
  expect(hasNews(at({ first: 30, second: 30 }), done)).toBe(false)
  expect(hasNews(at({ first: 29, second: 30 }), done), 'an older copy').toBe(true)
})

test('where no files are known the number tells', () => {
  const done: Extent = { changes: 7 }
  expect(hasNews({ changes: 7 }, done)).toBe(false)
  expect(hasNews({ changes: 8 }, done)).toBe(true)
  expect(hasNews({ changes: 6 }, done)).toBe(true)
})

test('of two readings each file is as far as the further one', () => {
  expect(furthest({ first: 3, second: 9 }, { first: 5, second: 8, other: 1 })).toEqual({
    first: 5,
    second: 9,
    other: 1,
  })
  expect(furthest(undefined, { first: 1 })).toEqual({ first: 1 })
})
