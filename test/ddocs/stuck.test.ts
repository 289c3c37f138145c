import { expect, test } from 'vitest'
import { NEVER_MS } from '../../ddocs/lib/stuck.ts'
import { countDocuments } from '../../sidecar/docstate/operator/count-documents.ts'
import { viewOf } from '../support/answers.ts'
import { guardedDb } from './guarded-db.ts'

const at = '2026-01-01T00:00:00.000Z'
const later = '2026-01-02T00:00:00.000Z'
const [ms, laterMs] = [Date.parse(at), Date.parse(later)]
const failure = { code: 'ECONNREFUSED', reason: 'refused', at }

/** Name, `docstate` of a document of type `t` in state `s`, its `error`, and the rest of its row: key and value. */
const rows: readonly [string, unknown, unknown, readonly unknown[], number][] = [
  ['a retry', { state: 's', retry_at: later, failure }, undefined, ['s', 'retry', 'ECONNREFUSED', at], ms],
  ['a retry after several failures', { state: 's', retry_at: later, failing_since: later, failure }, 1, ['s', 'retry', 'ECONNREFUSED', later], laterMs],
  ['a retry without a failure', { state: 's', retry_at: at }, undefined, ['s', 'retry', null, null], NEVER_MS],
  ['parked', { state: 's', parked: { at, reason: 'lost' } }, undefined, ['s', 'parked', null, at], ms],
  ['parked as text', { state: 's', parked: 'yes', failure: [] }, undefined, ['s', 'parked', null, null], NEVER_MS],
  ['parked, after a failure', { state: 's', parked: { at: later }, failure }, undefined, ['s', 'parked', 'ECONNREFUSED', later], laterMs],
  ['failed', { state: 's', failed_in: 'paid' }, { code: 'gone', at }, ['paid', 'failed', 'gone', at], ms],
  ['failed, in a state with a timeout', { state: 's', failed_in: 'paid', timeout_at: later }, { code: 'gone', at }, ['paid', 'failed', 'gone', at], ms],
  ['failed, with an array as state', { state: 's', failed_in: [1] }, 'an error', ['1', 'failed', null, null], NEVER_MS],
  ['a code that is a number', { state: 's', failed_in: 'paid' }, { code: 5, at: 'Friday' }, ['paid', 'failed', null, null], NEVER_MS],
  ['a long code', { state: 's', failed_in: 'paid' }, { code: 'x'.repeat(999), at }, ['paid', 'failed', 'x'.repeat(100), at], ms],
  ['an impossible date', { state: 's', failed_in: 'paid' }, { at: '2026-13-45T00:00:00Z' }, ['paid', 'failed', null, '2026-13-45T00:00:00Z'], NEVER_MS],
] // prettier-ignore

/** Documents that are not stuck. */
const others: readonly [string, unknown][] = [
  ['nothing', undefined],
  ['a claim', { state: 's', claim: { at }, failure }],
  ['handled', { state: 's', handled: at, failure }],
  ['a timeout', { state: 's', timeout_at: at, retry_at: later }],
  ['discarded', { state: 's', failed_in: 'paid', discarded: { at, by: 'ann' } }],
  ['a remnant of another state', { state: 'before', parked: { at } }],
]

async function setUp() {
  const db = await guardedDb()
  const docs = rows.map(([_id, docstate, error]) => ({ _id, type: 't', state: 's', error, docstate }))
  const notStuck = others.map(([_id, docstate]) => ({ _id, type: 't', state: 's', docstate }))
  const untyped = { _id: 'no type', state: 's', docstate: { state: 's', parked: { at } } }
  await db.bulk([...docs, ...notStuck, untyped].map((doc) => JSON.stringify(doc)))
  return db
}

test('the view has a row for each stuck document, also with malformed fields', async () => {
  const db = await setUp()
  const found = await viewOf(db, 'docstate', 'stuck', { reduce: false })
  expect(new Map(found.rows.map(({ id, key, value }) => [id, { key, value }]))).toEqual(
    new Map(rows.map(([id, , , key, value]) => [id, { key: ['t', ...key], value }])),
  )
})

test('stuck documents are counted by reason, with the time of the oldest if it is known', async () => {
  const { counts, stuck } = await countDocuments(await setUp())
  expect(counts).toContainEqual({ type: 't', state: 's', status: 'failed', count: 6 })
  expect(
    stuck.map(({ state, status, code, count, since }) => [state, status, code?.slice(0, 12), count, since]),
  ).toEqual([
    ['1', 'failed', undefined, 1, undefined],
    ['paid', 'failed', undefined, 2, undefined],
    ['paid', 'failed', 'gone', 2, at],
    ['paid', 'failed', 'xxxxxxxxxxxx', 1, at],
    ['s', 'parked', undefined, 2, at],
    ['s', 'parked', 'ECONNREFUSED', 1, later],
    ['s', 'retry', undefined, 1, undefined],
    ['s', 'retry', 'ECONNREFUSED', 2, at],
  ])
})
