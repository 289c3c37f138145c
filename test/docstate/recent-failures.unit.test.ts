import { expect, test } from 'vitest'
import { failureLike, RecentFailures, recentFailuresFrom } from '../../sidecar/docstate/recent-failures.ts'

function setUp() {
  let now = Date.parse('2026-11-28T12:00:00.000Z')
  const failures = new RecentFailures({ now: () => (now += 1000) })
  const add = (id: string, code: string, stack = `${code}: no\n    at ${id}`) =>
    failures.add({ database: 'shop', id, type: 'order', state: 'paid', code, stack })
  return { failures, add }
}

test('the newest failure of each handler and code is kept, ten in all, with a stack of bounded length', () => {
  const { failures, add } = setUp()
  for (let n = 0; n < 500; n++) add(`o${n}`, 'ECONNREFUSED')
  expect(failures.all).toMatchObject([{ id: 'o499', at: '2026-11-28T12:08:20.000Z' }])
  for (let n = 0; n < 30; n++) add('other', `code-${n}`, 'x'.repeat(9_000))
  expect(failures.all.map(({ code }) => code)).toEqual(Array.from({ length: 10 }, (_, n) => `code-${29 - n}`))
  expect(JSON.stringify(failures.all).length).toBeLessThan(17_000)
})

test('a document gets its own failure, or else the newest of its handler and code', () => {
  const [one, other] = [setUp(), setUp()]
  one.add('o1', 'TypeError')
  other.add('o3', 'RangeError')
  other.add('o2', 'TypeError')
  const all = [...one.failures.all, ...other.failures.all]
  const wanted = { database: 'shop', type: 'order', state: 'paid', code: 'TypeError' }
  expect(failureLike(all, { ...wanted, id: 'o1' })?.id).toBe('o1')
  expect(failureLike(all, { ...wanted, id: 'o9' })?.id).toBe('o2')
  expect(failureLike(all, { ...wanted, database: 'elsewhere', id: 'o1' })?.id).toBe('o2')
  for (const unlike of [{ code: 'Error' }, { state: 'new' }, { type: 'bill' }])
    expect(failureLike(all, { ...wanted, id: 'o1', ...unlike })).toBeUndefined()
})

test.each([undefined, null, 'text', [{ at: 'yesterday' }], [{ stack: 1 }]])(
  'a report %j of another worker has no failures',
  (value) => {
    expect(recentFailuresFrom(value)).toEqual([])
  },
)
