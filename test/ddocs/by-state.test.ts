import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { guardedDb } from './guarded-db.ts'

const at = '2026-01-01T00:00:00.000Z'
const later = '2026-01-02T00:00:00.000Z'
const claim = { worker: 'a', token: 'b', at, lease_ms: 1000 }

/** `docstate` of a document of type `t` in state `s`, and the status and time in the view's row. */
const rows: readonly [string, unknown, string, string | null][] = [
  ['nothing', undefined, 'ready', null],
  ['an entry without a status', { state: 's', entry: '1-a', attempts: 1 }, 'ready', null],
  ['a retry', { state: 's', retry_at: at }, 'retry', at],
  ['a timeout', { state: 's', timeout_at: at }, 'timeout', at],
  ['a claim', { state: 's', claim }, 'claimed', at],
  ['a parked entry', { state: 's', parked: { at, reason: 'lost' } }, 'parked', at],
  ['a handled entry', { state: 's', handled: at }, 'handled', null],
  ['a retry before a timeout', { state: 's', retry_at: at, timeout_at: at }, 'retry', at],
  ['a claim before a retry', { state: 's', claim, retry_at: at, timeout_at: at }, 'claimed', at],
  ['parked before a claim', { state: 's', parked: { at }, claim, retry_at: at }, 'parked', at],
  [
    'handled before any other status',
    { state: 's', handled: at, parked: { at }, claim, retry_at: at },
    'handled',
    null,
  ],
  ['handled, in a state with a timeout', { state: 's', handled: at, timeout_at: at }, 'handled', at],
  ['failed', { state: 's', failed_in: 'paid' }, 'failed', at],
  ['discarded', { state: 's', failed_in: 'paid', discarded: { at: later, by: 'ann' } }, 'discarded', later],
  ['failed, in a state with a timeout', { state: 's', failed_in: 'paid', timeout_at: later }, 'failed', later],
  ['discarded as text', { state: 's', failed_in: 'paid', discarded: 'yes' }, 'discarded', null],
  ['discarded, without a failed state', { state: 's', discarded: { at } }, 'ready', null],
  ['a timeout before a retry', { state: 's', retry_at: later, timeout_at: at }, 'timeout', at],
  ['a remnant of another state', { state: 'before', handled: at, claim }, 'ready', null],
  ['a remnant without a state', { handled: at }, 'ready', null],
  ['a retry with an object as time', { state: 's', retry_at: {} }, 'retry', null],
  ['a retry with a time that is not ISO 8601', { state: 's', retry_at: 'Fri Jan 02 2026' }, 'retry', null],
  ['a timeout as a number', { state: 's', timeout_at: 12 }, 'timeout', null],
  ['a claim without a time', { state: 's', claim: { at: null } }, 'claimed', null],
  ['a claim as a number', { state: 's', claim: 1 }, 'ready', null],
  ['parked as text', { state: 's', parked: 'yes' }, 'parked', null],
  ['null', null, 'ready', null],
  ['text', 's', 'ready', null],
  ['an array', ['s'], 'ready', null],
]

test('the view has a row for each document with a type and a state, with any docstate', async () => {
  const db = await guardedDb()
  const docs = rows.map(([_id, docstate]) => ({ _id, type: 't', state: 's', error: { at }, docstate }))
  const stateless = [
    { _id: 'no type', state: 's' },
    { _id: 'no state', type: 't' },
    { _id: 'numbers', type: 1, state: 2 },
  ]
  await db.bulk([...docs, ...stateless].map((doc) => JSON.stringify(doc)))
  const found = await viewOf(db, 'docstate', 'by_state', { reduce: false })
  const keys = new Map(found.rows.map(({ id, key, value }) => [id, { key, value }]))
  expect(keys).toEqual(
    new Map(rows.map(([id, , status, time]) => [id, { key: ['t', 's', status, time], value: null }])),
  )
})

test('the view counts documents by type, state and status', async () => {
  const db = await guardedDb()
  const docs = rows.map(([_id, docstate]) => ({ _id, type: 't', state: 's', error: { at }, docstate }))
  await db.bulk([...docs, { _id: 'other', type: 't', state: 'other' }].map((doc) => JSON.stringify(doc)))
  const counts = await viewOf(db, 'docstate', 'by_state', { group_level: 2, reduce: true })
  expect(counts.rows).toEqual([
    { key: ['t', 'other'], value: 1 },
    { key: ['t', 's'], value: rows.length },
  ])
})
