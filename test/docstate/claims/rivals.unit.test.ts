import { expect, test } from 'vitest'
import { compareRevs } from '../../../sidecar/couch/documents.ts'
import { judgeClaim, judgeOutcome, takingOut } from '../../../sidecar/docstate/claims/rivals.ts'

/** The leaf at the end of this way, the last revision first, a letter for each. */
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
  ['nobody is beside it', [], 'alone'],
  ['others were taken back', [yielded('xba'), yielded('xca')], 'alone'],
  ['a conflict is older than it', [leaf('z'), leaf('zy')], 'alone'],
  ['claims come before it', [claimed('ba'), claimed('ca')], 'wait'],
  ['a claim comes after it', [claimed('ba'), claimed('ea')], 'yield'],
  ['a claim before it is renewed', [claimed('bba')], 'yield'],
  ['another has gone on', [leaf('ba', { state: 'invoiced' })], 'yield'],
  ['another worker deleted the document', [leaf('xba', { _deleted: true })], 'yield'],
  ['another was merged, so that it may have won, and nothing else stays', [merged('xba')], 'wait'],
  ['another was merged into what stays', [merged('xba'), leaf('yca')], 'yield'],
  ['what a client wrote as a claim is an edit', [leaf('ba', { docstate: { state: 'paid', claim: {} } })], 'yield'],
])('of a claim: %s', (_, others, verdict) => {
  const ours = claimed('da')
  expect(judgeClaim(ours, '1-a', [ours, ...others])).toBe(verdict)
})

test('claims that all see each other never all leave', () => {
  const all = [claimed('ba'), claimed('ca'), claimed('da')]
  expect(all.map((ours) => judgeClaim(ours, '1-a', all))).toEqual(['yield', 'yield', 'wait'])
})

test('a leaf that was merged is told from one that its own worker took back', () => {
  const [taken, mergedOne] = [takingOut([claimed('ba')], []), takingOut([claimed('ba')], [], 'merged')]
  expect(taken[0]).toMatchObject({ _deleted: true, docstate: { yielded: true } })
  expect(mergedOne[0]).toMatchObject({ _deleted: true, docstate: { merged: true } })
  expect(mergedOne[0]!.docstate).not.toHaveProperty('yielded')
  expect(taken[0]!._rev).not.toBe(mergedOne[0]!._rev) // one revision never has two bodies
})

test('of outcomes below the quorum the last stays, and takes out those that say the same', () => {
  const [first, last] = [leaf('ba', { state: 'invoiced' }), leaf('ca', { state: 'invoiced', by: 'another' })]
  expect(judgeOutcome(first, base, [first, last])).toEqual([first])
  expect(judgeOutcome(last, base, [first, last])).toEqual([first])
})

test('an outcome below the quorum gives way to what a client wrote, and leaves another outcome alone', () => {
  const ours = leaf('ca', { state: 'invoiced' })
  expect(judgeOutcome(ours, base, [ours, leaf('ba', { note: 'corrected' })])).toEqual([ours])
  expect(judgeOutcome(ours, base, [ours, leaf('ba', { state: 'refunded' })])).toEqual([])
})
