import { expect, test } from 'vitest'
import { compareRevs } from '../../../sidecar/couch/documents.ts'
import { judgeClaim, judgeOutcome, takingOut } from '../../../sidecar/docstate/claims/rivals.ts'

/** Creates the leaf of a path with one letter per revision, last revision first. */
const leaf = (way: string, fields: object = {}) => ({
  ...{ _id: 'o', _rev: `${way.length}-${way[0]}`, _revisions: { start: way.length, ids: [...way] } },
  ...{ type: 'order', state: 'paid', ...fields },
})
const claim = { worker: 'w', token: 't', at: '', lease_ms: 1000 }
const claimed = (way: string) => leaf(way, { docstate: { state: 'paid', entry: '1-a', claim } })
const gone = (way: string, why: object) => leaf(way, { _deleted: true, docstate: { state: 'paid', claim, ...why } })
const yielded = (way: string) => gone(way, { yielded: true })
const merged = (way: string) => gone(way, { merged: true })
const base = leaf('a')

test('revisions are ordered as CouchDB orders them', () => {
  expect(['2-b', '10-a', '2-a', '2-b'].sort(compareRevs)).toEqual(['2-a', '2-b', '2-b', '10-a'])
})

test.each([
  ['it has no rival', [], 'alone'],
  ['its rivals were released', [yielded('xba'), yielded('xca')], 'alone'],
  ['a conflict is older than it', [leaf('z'), leaf('zy')], 'alone'],
  ['claims come before it', [claimed('ba'), claimed('ca')], 'wait'],
  ['a claim comes after it', [claimed('ba'), claimed('ea')], 'yield'],
  ['a claim before it is renewed', [claimed('bba')], 'yield'],
  ['another worker saved a result', [leaf('ba', { state: 'invoiced' })], 'yield'],
  ['another worker deleted the document', [leaf('xba', { _deleted: true })], 'yield'],
  ['a merged claim may have won and no other leaf is left', [merged('xba')], 'wait'],
  ['another claim was merged into a remaining leaf', [merged('xba'), leaf('yca')], 'yield'],
  ['a client wrote an invalid claim', [leaf('ba', { docstate: { state: 'paid', claim: {} } })], 'yield'],
])('a claim is judged by its rivals: %s', (_, others, verdict) => {
  const ours = claimed('da')
  expect(judgeClaim(ours, '1-a', [ours, ...others])).toBe(verdict)
})

test('claims that all see each other never all yield', () => {
  const all = [claimed('ba'), claimed('ca'), claimed('da')]
  expect(all.map((ours) => judgeClaim(ours, '1-a', all))).toEqual(['yield', 'yield', 'wait'])
})

test('a merged leaf differs from a leaf that its own worker released', () => {
  const [taken, mergedOne] = [takingOut([claimed('ba')], []), takingOut([claimed('ba')], [], 'merged')]
  expect(taken[0]).toMatchObject({ _deleted: true, docstate: { yielded: true } })
  expect(mergedOne[0]).toMatchObject({ _deleted: true, docstate: { merged: true } })
  expect(mergedOne[0]!.docstate).not.toHaveProperty('yielded')
  expect(taken[0]!._rev).not.toBe(mergedOne[0]!._rev) // different bodies need different revisions
})

test('the last revision of two equal outcomes below the quorum stays and removes the other', () => {
  const [first, last] = [leaf('ba', { state: 'invoiced' }), leaf('ca', { state: 'invoiced', by: 'another' })]
  expect(judgeOutcome(first, base, [first, last])).toEqual([first])
  expect(judgeOutcome(last, base, [first, last])).toEqual([first])
})

test('an outcome below the quorum yields to a client’s edit and keeps a different outcome', () => {
  const ours = leaf('ca', { state: 'invoiced' })
  expect(judgeOutcome(ours, base, [ours, leaf('ba', { note: 'corrected' })])).toEqual([ours])
  expect(judgeOutcome(ours, base, [ours, leaf('ba', { state: 'refunded' })])).toEqual([])
})
