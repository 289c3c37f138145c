import { expect, test } from 'vitest'
import { Book } from '../../sidecar/indexes/book.ts'

const index = (ddoc: string, rev = '1-a') => ({ database: 'orders', ddoc, kind: 'view', name: 'x', rev }) as const

test('the build time of an index is forgotten after a while, except during a build or before a retry', () => {
  const book = new Book()
  book.list(
    'orders',
    ['old', 'new', 'running', 'failed'].map((ddoc) => index(ddoc)),
    0,
  )
  const [old, fresh, running, failed] = [...book.entries()]
  for (const [entry, at] of [
    [old, 100],
    [fresh, 200],
    [failed, 100],
  ] as const) {
    entry!.begin(5, at, undefined)
    entry!.reach(at, at)
  }
  failed!.begin(6, 100, undefined)
  failed!.fail({ code: 'server', reason: 'no', at: 100, count: 1 }, 100, 5100)
  running!.begin(5, 100, undefined)
  book.prune(150)
  expect([old, fresh, running, failed].map((entry) => entry!.job !== undefined)).toEqual([false, true, true, true])
})

test('a changed design document makes a new index, and the index of a removed one ends', () => {
  const book = new Book()
  book.list('orders', [index('same'), index('changed'), index('gone')], 0)
  const [same, changed, gone] = [...book.entries()]
  book.list('orders', [index('same'), index('changed', '2-b'), index('new')], 10)
  const now = [...book.entries()]
  expect(now[0]).toBe(same)
  expect(now[1]).not.toBe(changed)
  expect([same, changed, gone].map((entry) => entry!.ended.aborted)).toEqual([false, true, true])
  expect(book.counts(10)).toMatchObject({ databases: 1, fresh: 0, behind: 3 })
  book.close('orders')
  expect(same!.ended.aborted).toBe(true)
})
