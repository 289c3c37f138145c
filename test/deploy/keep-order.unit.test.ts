import { expect, test } from 'vitest'
import { keepOrder } from '../../sidecar/deploy/plan.ts'

const json = (ddoc: object) => JSON.stringify(ddoc)

test('existing keys keep the order of the database, new keys follow by name, and removed keys disappear', () => {
  const current = { _id: '_design/a', views: { c: { reduce: '_sum', map: '1' }, gone: { map: '2' }, a: { map: '3' } } }
  const compiled = {
    _id: '_design/a',
    views: { z: { map: '5' }, a: { map: '3' }, b: { map: '4' }, c: { map: '1', reduce: '_sum' } },
  }
  expect(json(keepOrder(compiled, current))).toBe(
    json({
      _id: '_design/a',
      views: { c: { reduce: '_sum', map: '1' }, a: { map: '3' }, b: { map: '4' }, z: { map: '5' } },
    }),
  )
})

test('a new design document has its keys in the order of their names, for any order of files', () => {
  const one = { _id: '_design/a', views: { b: { reduce: '_sum', map: '1' }, a: { map: '2' } }, options: { y: 1, x: 2 } }
  const other = {
    _id: '_design/a',
    options: { x: 2, y: 1 },
    views: { a: { map: '2' }, b: { map: '1', reduce: '_sum' } },
  }
  const views = { a: { map: '2' }, b: { map: '1', reduce: '_sum' } }
  for (const ddoc of [one, other]) expect(json(keepOrder(ddoc, undefined).views as object)).toBe(json(views))
  for (const ddoc of [one, other]) expect(json(keepOrder(ddoc, undefined).options as object)).toBe(json({ x: 2, y: 1 }))
})

test('a malformed field in the database is ignored', () => {
  const views = { a: { map: '1' } }
  for (const broken of ['x', null, [], { a: 7 }]) {
    expect(keepOrder({ _id: '_design/a', views }, { _id: '_design/a', views: broken })).toEqual({
      _id: '_design/a',
      views,
    })
  }
})
