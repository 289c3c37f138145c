import { expect, test } from 'vitest'
import { compareTransitions, mergeFields } from '../../sidecar/docstate/merge.ts'

const doc = (fields: object) => ({ _id: 'o', _rev: '2-a', type: 'order', ...fields })

test.each([
  ['changed by theirs', { a: 1 }, { a: 2 }, { a: 1 }, { a: 2 }],
  ['changed by ours', { a: 2 }, { a: 1 }, { a: 1 }, { a: 2 }],
  ['changed by both', { a: 2 }, { a: 3 }, { a: 1 }, { a: 3 }],
  ['added by theirs', {}, { a: 1 }, {}, { a: 1 }],
  ['removed by theirs', { a: 1 }, {}, { a: 1 }, {}],
  ['removed by ours', {}, { a: 1 }, { a: 1 }, {}],
  ['nested', { a: { b: 1, c: 1 } }, { a: { b: 2, c: 1 } }, { a: { b: 1, c: 1 } }, { a: { b: 2, c: 1 } }],
  ['of the state', { state: 'x', error: 1 }, { state: 'y', docstate: {} }, {}, { state: 'x', error: 1 }],
  ['differing, where nobody knows the beginning', { a: 1, b: 1 }, { a: 2, c: 1 }, undefined, { a: 2, b: 1, c: 1 }],
])('a field %s', (_, ours, theirs, base, merged) => {
  const conflict = { ours: doc(ours), theirs: doc({ ...theirs, _rev: '2-b' }), base: base && doc(base) }
  expect(mergeFields(conflict)).toEqual(doc(merged))
})

const machine = {
  paid: { next: { invoiced: 'sidecar', cancelled: 'client' } },
  invoiced: { next: { archived: 'sidecar', cancelled: 'client' } },
  archived: {},
  cancelled: {},
  late: { timeout: { afterMs: 1, next: 'paid' } },
} as const

test.each([
  ['invoiced', 'paid', 'paid', true, 'the other made none'],
  ['paid', 'late', 'paid', false, 'the other made none'],
  ['cancelled', 'invoiced', 'paid', true, 'it comes later'],
  ['archived', 'paid', 'late', true, 'it comes later'],
])('%s counts before %s, which began as %s: %s, since %s', (a, b, base, first) => {
  const compared = (one: object, other: object) =>
    Math.sign(compareTransitions(doc(one), doc(other), doc({ state: base }), machine))
  expect(compared({ state: a }, { state: b })).toBe(first ? -1 : 1)
  expect(compared({ state: b }, { state: a })).toBe(first ? 1 : -1)
})

test('where nothing else tells, the one with the engine’s field counts, then the one that CouchDB shows', () => {
  const claimed = doc({ state: 'paid', _rev: '2-a', docstate: { state: 'paid', claim: {} } })
  const edited = doc({ state: 'paid', _rev: '4-d' })
  expect(compareTransitions(claimed, edited, undefined)).toBeLessThan(0)
  expect(compareTransitions(edited, doc({ state: 'paid', _rev: '3-z' }), undefined)).toBeLessThan(0)
  expect(
    compareTransitions(doc({ state: 'x', _rev: '10-a' }), doc({ state: 'y', _rev: '9-z' }), undefined),
  ).toBeLessThan(0)
})
