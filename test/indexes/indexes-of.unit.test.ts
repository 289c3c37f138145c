import { expect, test } from 'vitest'
import { indexesOf, type IndexKind } from '../../sidecar/indexes/indexes-of.ts'

const all: IndexKind[] = ['view', 'search', 'nouveau']
const map = 'function (doc) { emit(doc._id) }'
const fullText = { index: 'function (doc) {}' }
const named = (ddoc: object, kinds = all) =>
  indexesOf('orders', { _id: '_design/d', _rev: '1-a', ...ddoc }, kinds).map(({ kind, name }) => `${kind} ${name}`)

const everything = {
  views: { lib: { x: '' }, one: { map }, two: { map } },
  indexes: { text: fullText, more: fullText },
  nouveau: { lucene: fullText },
}

test('all views form one index, read through any view except the library; each full-text index is separate', () => {
  expect(named(everything)).toEqual(['view one', 'search text', 'search more', 'nouveau lucene'])
})

test('index kinds that the server lacks give no index', () => {
  expect(named(everything, ['view'])).toEqual(['view one'])
})

test.each<[unknown, string[]]>([
  [false, []],
  [true, ['view one', 'search text', 'search more', 'nouveau lucene']],
  [{ views: false }, ['search text', 'search more', 'nouveau lucene']],
  [{ indexes: false }, ['view one', 'nouveau lucene']],
  [{ nouveau: false }, ['view one', 'search text', 'search more']],
  [{ views: false, indexes: false, nouveau: false }, []],
  [{ views: 'false', indexes: null }, ['view one', 'search text', 'search more', 'nouveau lucene']],
  ['false', ['view one', 'search text', 'search more', 'nouveau lucene']],
  [null, ['view one', 'search text', 'search more', 'nouveau lucene']],
])('autoupdate %j selects the right indexes', (autoupdate, expected) => {
  expect(named({ ...everything, autoupdate })).toEqual(expected)
})

test.each<[string, object]>([
  ['none', {}],
  ['only a library', { views: { lib: { x: '' } } }],
  ['a filter', { filters: { mine: 'function () { return true }' } }],
  ['garbage', { views: 'all', indexes: [1], nouveau: null }],
  ['views without a map', { views: { one: {}, two: null, three: 'x' } }],
])('a design document with %s has no index', (_, ddoc) => {
  expect(named(ddoc)).toEqual([])
})

test('Mango indexes are views', () => {
  const mango = { language: 'query', views: { byA: { map: { fields: { a: 'asc' } }, reduce: '_count', options: {} } } }
  expect(named(mango)).toEqual(['view byA'])
})
