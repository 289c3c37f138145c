import { expect, test } from 'vitest'
import type { StoredAccount } from '../../sidecar/accounts/documents.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import type { StoredRecord } from '../../sidecar/channels/documents.ts'
import { copiesOf } from '../../sidecar/channels/reconcile/copies.ts'

const record = (fields: object = {}) =>
  ({
    ...{ _id: 'channel:1', _rev: '1-a', type: 'channel_record', state: 'ready', name: 'photos', life: 1 },
    ...{ owner: 'ann@example.com', owner_role: 'owner-1', user_database: 'userdb-1', document: 'photos' },
    ...{ members: ['bob@example.com'], former: [], database: 'channel-1', role: 'channel-1', ...fields },
  }) as StoredRecord
const bob = { _id: 'account:bob', _rev: '1-a', type: 'account', address: 'bob@example.com' } as unknown as StoredAccount
const copy = (fields: object) =>
  ({ _id: 'channel:1', _rev: '2-a', type: 'channel', name: 'photos', ...fields }) as unknown as StoredDoc
const subscription = (fields: object) =>
  ({
    ...{ _id: 'subscription:channel:1', _rev: '2-a', type: 'subscription', channel_id: 'channel:1', ...fields },
  }) as unknown as StoredDoc

/** What is written for Bob's subscription, beside a channel that is there already. */
function written(there: readonly StoredDoc[], fields: object = {}) {
  const truth = { devices: [], records: [record(fields)], revs: '' }
  const docs = copiesOf(truth, bob, 'http://couch', new Map(there.map((doc) => [doc._id, doc])))
  return docs.find(({ type }) => type === 'subscription')
}

test.each([
  ['one that went with its channel begins anew with it', { state: 'ended', withdrawn: true }, 'invite'],
  ['so does none', undefined, 'invite'],
  ['one that its user has ended stays so', { state: 'ended' }, undefined],
  ['one that goes on forgets that it had gone', { state: 'active', withdrawn: true }, 'active'],
  ['and else is left alone', { state: 'paused' }, undefined],
])('of a channel that is ready: %s', (_, fields, state) => {
  const made = written([copy({ state: 'ready', database: 'channel-1' }), ...(fields ? [subscription(fields)] : [])])
  expect(made?.state).toBe(state)
  expect(made?.withdrawn).toBeUndefined()
})

test.each([
  ['closed', { state: 'closed' }],
  ['taken from its user', { members: [] }],
])('of a channel that is %s: it ends with it, once', (_, fields) => {
  const channel = copy({ state: 'ready', database: 'channel-1' })
  for (const state of ['active', 'paused', 'invite', 'ended']) {
    const ended = written([channel, subscription({ state })], fields)
    expect(ended).toMatchObject({ state: 'ended', withdrawn: true })
    expect(written([channel, ended as StoredDoc], fields)).toBeUndefined()
  }
})
