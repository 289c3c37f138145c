import { expect, test } from 'vitest'
import type { StoredAccount } from '../../sidecar/accounts/account-documents.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import type { StoredRecord } from '../../sidecar/channels/channel-documents.ts'
import { copiesOf } from '../../sidecar/channels/reconcile/copies.ts'

const record = (fields: object = {}) =>
  ({
    ...{ _id: 'channel:1', _rev: '1-a', type: 'channel_record', state: 'ready', name: 'photos', life: 1 },
    ...{ owner: 'ann@example.com', owner_role: 'owner-1', user_database: 'userdb-1', document: 'photos' },
    ...{ members: ['bob@example.com'], former: [], database: 'channel-1', role: 'channel-1', ...fields },
  }) as unknown as StoredRecord
const bob = { _id: 'account:bob', _rev: '1-a', type: 'account', address: 'bob@example.com' } as unknown as StoredAccount
const copy = (fields: object) =>
  ({ _id: 'channel:1', _rev: '2-a', type: 'channel', name: 'photos', ...fields }) as unknown as StoredDoc
const subscription = (fields: object) =>
  ({
    ...{ _id: 'subscription:channel:1', _rev: '2-a', type: 'subscription', channel_id: 'channel:1', ...fields },
  }) as unknown as StoredDoc

const ann = { ...bob, _id: 'account:ann', address: 'ann@example.com' } as unknown as StoredAccount

/** The copies that the sidecar writes for an account beside these existing documents. */
function copies(account: StoredAccount, existing: readonly StoredDoc[], fields: object = {}) {
  const truth = { devices: [], records: [record(fields)], revs: '' }
  return copiesOf(truth, account, 'http://couch', new Map(existing.map((doc) => [doc._id, doc])))
}

/** The subscription that the sidecar writes for Bob beside the existing documents. */
const written = (existing: readonly StoredDoc[], fields: object = {}) =>
  copies(bob, existing, fields).find(({ type }) => type === 'subscription')

test.each([
  ['a withdrawn one becomes an invitation again', { state: 'ended', withdrawn: true }, 'invite'],
  ['a missing one is created as an invitation', undefined, 'invite'],
  ['one that the user ended stays ended', { state: 'ended' }, undefined],
  ['an active one loses its withdrawn mark', { state: 'active', withdrawn: true }, 'active'],
  ['a paused one is unchanged', { state: 'paused' }, undefined],
])('a subscription follows its ready channel: %s', (_, fields, state) => {
  const made = written([copy({ state: 'ready', database: 'channel-1' }), ...(fields ? [subscription(fields)] : [])])
  expect(made?.state).toBe(state)
  expect(made?.withdrawn).toBeUndefined()
})

test.each([
  ['the channel is closed', { state: 'closed' }],
  ['the member is removed', { members: [] }],
])('a subscription ends once when %s', (_, fields) => {
  const channel = copy({ state: 'ready', database: 'channel-1' })
  for (const state of ['active', 'paused', 'invite', 'ended']) {
    const ended = written([channel, subscription({ state })], fields)
    expect(ended).toMatchObject({ state: 'ended', withdrawn: true })
    expect(written([channel, ended as StoredDoc], fields)).toBeUndefined()
  }
})

test.each(['channel-1', 'channel-0'])(
  'the copy of a member shows that the channel has ended, from any earlier life: %s',
  (database) => {
    const received = copies(bob, [copy({ state: 'ready', database })], { state: 'closed', members: [], life: 2 })
    expect(received).toMatchObject([{ _id: 'channel:1', state: 'closed' }])
    for (const state of ['closed', 'removed'])
      expect(copies(bob, [copy({ state, database })], { state: 'closed' })).toEqual([])
  },
)

test.each([
  ['accepted', 'photos', 'closed'],
  ['accepted', 'pictures', undefined],
  ['closing', 'pictures', 'closed'],
  ['new', 'photos', undefined],
])(
  'the owner’s document in state %s with the name %s is closed only if it belongs to the ended channel',
  (state, name, expected) => {
    const own = copy({ _id: 'photos', state, name, database: 'channel-1' })
    const received = copies(ann, [own], { state: 'closed' }).find(({ type }) => type === 'channel')
    expect(received?.state).toBe(expected)
    if (received) expect(received.owner_role).toBe('owner-1') // with this role the owner may make the channel again
  },
)
