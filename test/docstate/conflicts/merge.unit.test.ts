import { expect, test } from 'vitest'
import { checkMerged } from '../../../sidecar/docstate/conflicts/fold.ts'
import { chooseDocstate } from '../../../sidecar/docstate/conflicts/fold.ts'
import { fold, mergedAlready, naming, sameDocument } from '../../../sidecar/docstate/conflicts/fold.ts'
import { compareTransitions, mergeFields, type Resolver } from '../../../sidecar/docstate/conflicts/merge.ts'
import { mergeAttachments, type Stubs } from '../../../sidecar/docstate/conflicts/merge-attachments.ts'

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
  ['that differs without a known common ancestor', { a: 1, b: 1 }, { a: 2, c: 1 }, undefined, { a: 2, b: 1, c: 1 }],
])('mergeFields merges a field %s', (_, ours, theirs, base, merged) => {
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
  ['invoiced', 'paid', 'paid', true, 'the other branch made no transition'],
  ['paid', 'late', 'paid', false, 'the other branch made no transition'],
  ['cancelled', 'invoiced', 'paid', true, 'it comes later'],
  ['archived', 'paid', 'late', true, 'it comes later'],
])('state %s takes precedence over %s from ancestor %s: %s, because %s', (a, b, base, first) => {
  const compared = (one: object, other: object) =>
    Math.sign(compareTransitions(doc(one), doc(other), doc({ state: base }), machine))
  expect(compared({ state: a }, { state: b })).toBe(first ? -1 : 1)
  expect(compared({ state: b }, { state: a })).toBe(first ? 1 : -1)
})

test('without other criteria, the branch with docstate wins, then the branch that CouchDB shows', () => {
  const claimed = doc({ state: 'paid', _rev: '2-a', docstate: { state: 'paid', claim: {} } })
  const edited = doc({ state: 'paid', _rev: '4-d' })
  expect(compareTransitions(claimed, edited, undefined)).toBeLessThan(0)
  expect(compareTransitions(edited, doc({ state: 'paid', _rev: '3-z' }), undefined)).toBeLessThan(0)
  expect(
    compareTransitions(doc({ state: 'x', _rev: '10-a' }), doc({ state: 'y', _rev: '9-z' }), undefined),
  ).toBeLessThan(0)
})

test.each([
  ['a released claim', {}],
  ['a failed attempt', { attempts: 1, failure: { code: 'x', reason: '', at: '' }, retry_at: 'soon' }],
])('without a common ancestor, %s does not take precedence over a finished branch', (_, more) => {
  const waits = doc({ state: 'paid', _rev: '3-z', docstate: { state: 'paid', entry: '1-z', ...more } })
  const finished = doc({ state: 'invoiced', _rev: '3-a' })
  expect(compareTransitions(waits, finished, undefined)).toBeGreaterThan(0)
  expect(compareTransitions(finished, waits, undefined)).toBeLessThan(0)
  const begun = doc({ ...waits, docstate: { state: 'paid', entry: '1-z', claim: {} } })
  expect(compareTransitions(begun, finished, undefined)).toBeLessThan(0)
})

const entry = (fields: object) => ({ state: 'paid', entry: '1-a', ...fields })
const claim = { worker: 'a', token: 't', at: '', lease_ms: 1000 }
const failed = entry({ attempts: 1, failure: { code: 'x', reason: '', at: '' }, retry_at: 'soon' })

test.each([
  ['changed on one branch', failed, entry({ handled: 'now' }), failed, entry({ handled: 'now' })],
  [
    'changed on one branch, with another order of fields',
    entry({ claim }),
    failed,
    { ...{ retry_at: 'soon' }, ...failed },
    entry({ claim }),
  ],
  ['removed on one branch by a new entry', undefined, failed, failed, undefined],
  [
    'handled on both',
    entry({ handled: 'now', x: 1 }),
    entry({ handled: 'then' }),
    failed,
    entry({ handled: 'now', x: 1 }),
  ],
  [
    'handled on one branch and parked on the other',
    entry({ parked: {} }),
    entry({ handled: 'now' }),
    failed,
    entry({ handled: 'now' }),
  ],
  [
    'parked on one branch and claimed on the other',
    entry({ claim }),
    entry({ parked: {} }),
    undefined,
    entry({ parked: {} }),
  ],
  ['claimed on one branch and failed on the other', failed, entry({ claim }), undefined, entry({ claim })],
  ['failed on one branch and released on the other', entry({}), failed, undefined, failed],
  ['failed on one branch, with an invalid claim on the other', failed, entry({ claim: {} }), undefined, failed],
  ['missing in the ancestor and on one branch', undefined, failed, undefined, failed],
  ['with only merged revisions on one branch', entry({ merges: ['2-x'] }), failed, entry({}), failed],
])('chooseDocstate chooses the docstate of an entry %s', (_, ours, theirs, base, chosen) => {
  const conflict = {
    ours: doc({ state: 'paid', docstate: ours }),
    theirs: doc({ state: 'paid', docstate: theirs }),
    base: doc({ state: 'paid', docstate: base }),
  }
  expect(chooseDocstate(conflict, 'paid')).toEqual(chosen)
})

test('the docstate comes from the branch with the merged state, with the done effects of both branches', () => {
  const [a, b] = [
    doc({ state: 'paid', docstate: failed }),
    doc({ state: 'sent', docstate: { state: 'sent', handled: 'x' } }),
  ]
  expect(chooseDocstate({ ours: a, theirs: b, base: undefined }, 'paid')).toEqual(failed)
  expect(chooseDocstate({ ours: a, theirs: b, base: undefined }, 'sent')).toEqual({ state: 'sent', handled: 'x' })
  expect(chooseDocstate({ ours: a, theirs: b, base: undefined }, 'made up')).toBeUndefined()
  const [one, other] = [entry({ claim, done: ['m1'] }), entry({ attempts: 1, done: ['m2'] })]
  const both = { ours: doc({ state: 'paid', docstate: one }), theirs: doc({ state: 'paid', docstate: other }) }
  expect(chooseDocstate({ ...both, base: undefined }, 'paid')?.done).toEqual(['m1', 'm2'])
})

const stubs = (...names: string[]): Stubs =>
  Object.fromEntries(names.map((name) => [name[0]!, { content_type: 'text/plain', digest: name, length: 1 }]))

test.each([
  ['added on either side', stubs('a1'), stubs('b1'), stubs(), stubs('a1', 'b1')],
  ['removed by theirs', stubs('a1', 'b1'), stubs('a1'), stubs('a1', 'b1'), stubs('a1')],
  ['removed by ours', stubs('a1'), stubs('a1', 'b1'), stubs('a1', 'b1'), stubs('a1')],
  ['removed by ours and changed by theirs', stubs(), stubs('a2'), stubs('a1'), stubs('a2')],
  ['changed by ours', stubs('a2'), stubs('a1'), stubs('a1'), stubs('a2')],
  ['changed by both', stubs('a2'), stubs('a3'), stubs('a1'), stubs('a3')],
  ['without a known common ancestor', stubs('a1', 'b1'), stubs('a2', 'c1'), undefined, stubs('a2', 'b1', 'c1')],
])('mergeAttachments merges an attachment %s', (_, ours, theirs, base, merged) => {
  const has = (attachments: Stubs) => doc({ _attachments: attachments })
  expect(mergeAttachments({ ours: has(ours), theirs: has(theirs), base: base && has(base) })).toEqual(merged)
})

test.each([
  ['nothing', undefined, 'expected a document, got undefined'],
  ['a promise', Promise.resolve(doc({ state: 'paid' })), 'expected a document, got a promise: a resolver is not async'],
  ['an array', [], 'expected a document, got an array'],
  ['a class instance', new Date(), 'expected a document, got Date'],
  ['another type', doc({ type: 'letter', state: 'paid' }), 'expected type order, got letter'],
  ['no state', doc({ state: 7 }), 'expected a state, got number'],
  [
    'a document without JSON',
    doc({ state: 'paid', n: 1n }),
    'expected a document with JSON: Do not know how to serialize a BigInt',
  ],
  ['a document', doc({ state: 'paid' }), undefined],
])('checkMerged checks the result of a resolver: %s', (_, made, fault) => {
  expect(checkMerged(made, doc({ state: 'paid' }))).toBe(fault)
})

const folded = (resolver?: Resolver, faults: unknown[] = []) => {
  const [ours, theirs] = [
    doc({ _rev: '4-d', state: 'invoiced', n: 42 }),
    doc({ _rev: '3-c', state: 'paid', note: 'ring' }),
  ]
  const branches = [{ leaf: theirs, base: doc({ _rev: '1-a', state: 'paid' }) }]
  return fold(ours, branches, { machine: undefined, resolver, onFault: (fault) => faults.push(fault) })
}

test('a resolver gets copies and cannot change docstate, attachments or CouchDB’s own fields', () => {
  const merged = folded(({ ours, theirs }) => {
    Object.assign(theirs, { note: 'changed in place' })
    return {
      ...ours,
      _id: 'x',
      _deleted: true,
      _attachments: stubs('a1'),
      docstate: { state: 'invoiced', handled: 'x' },
    }
  })
  expect(merged).toEqual(doc({ _rev: '4-d', state: 'invoiced', n: 42 }))
  const faults: unknown[] = []
  const inPlace: Resolver = ({ theirs }) => (Object.assign(theirs, { note: 'changed in place' }), null as never)
  expect(folded(inPlace, faults)).toEqual(doc({ _rev: '4-d', state: 'invoiced', n: 42, note: 'ring' }))
  expect(faults).toEqual(['expected a document, got null'])
})

test('a claim in a merged document belongs to no worker, also after another merge', () => {
  const dead = doc({ _rev: '2-b', state: 'paid', docstate: entry({ claim }) })
  const edited = doc({ _rev: '3-c', state: 'paid', note: 'ring' })
  const options = { machine: undefined, resolver: undefined, onFault: () => undefined }
  const merged = fold(edited, [{ leaf: dead, base: doc({ _rev: '1-a', state: 'paid' }) }], options)
  expect(merged.docstate).toEqual(entry({ claim: { ...claim, token: 'merged:t' } }))
  expect(fold(merged, [{ leaf: edited, base: undefined }], options).docstate).toEqual(merged.docstate)
})

test('a merged document contains the revisions it names and ignores names of later revisions', () => {
  const [first, second] = [doc({ _rev: '2-b', state: 'paid' }), doc({ _rev: '3-c', state: 'paid' })]
  const merged = naming(doc({ _rev: '4-d', state: 'paid' }), [second, first])
  expect(merged.docstate).toEqual({ state: 'paid', merges: ['2-b', '3-c'] })
  expect(mergedAlready([merged, second, first])).toEqual([second, first])
  expect(mergedAlready([{ ...merged, state: 'invoiced' }, first])).toEqual([first])
  expect(mergedAlready([second, naming(first, [second])])).toEqual([])
  expect(sameDocument(merged, doc({ state: 'paid', _rev: '4-d' }))).toBe(true)
  expect(sameDocument(merged, doc({ state: 'paid', _rev: '4-d', docstate: failed }))).toBe(false)
})
