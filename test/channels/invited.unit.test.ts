import { expect, test } from 'vitest'
import { invitedTo } from '../../sidecar/channels/reconcile/invited.ts'
import type { StoredRecord } from '../../sidecar/channels/channel-documents.ts'
import type { StoredAccount } from '../../sidecar/accounts/account-documents.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'

const bob = 'bob@example.com'
const account = { address: bob } as StoredAccount
/** Records, oldest first, as in an account. */
const by = (owner: string, at = 0, fields: object = {}) =>
  ({
    _id: `channel:${owner}-${at}`,
    type: 'channel_record',
    state: 'ready',
    owner,
    members: [bob],
    ...fields,
  }) as unknown as StoredRecord
const strangers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => by(`stranger${from + at}@example.com`))
const subscription = ({ _id }: StoredRecord, state: string, fields: object = {}) =>
  [
    `subscription:${_id}`,
    { _id: `subscription:${_id}`, type: 'subscription', state, ...fields } as unknown as StoredDoc,
  ] as const

test('up to fifty invitations are all shown', () => {
  expect(invitedTo(strangers(50), account, new Map()).hidden.size).toBe(0)
})

test('only the newest fifty invitations from strangers are shown, even if older ones were shown before', () => {
  const records = strangers(100)
  const shown = new Map(records.slice(0, 50).map((record) => subscription(record, 'invite')))
  const { hidden } = invitedTo(records, account, shown)
  expect([...hidden].sort()).toEqual(
    records
      .slice(0, 50)
      .map(({ _id }) => _id)
      .sort(),
  )
})

test('a hundred strangers do not hide accepted channels or invitations from known owners', () => {
  const [taken, friends, members] = [by('ann@example.com', 1), by('ann@example.com', 2), by('carl@example.com')]
  const own = by(bob, 0, { members: ['carl@example.com'] })
  const records = [taken, friends, members, own, ...strangers(100)]
  const { hidden, answered } = invitedTo(records, account, new Map([subscription(taken, 'active')]))
  for (const { _id } of [taken, friends, members, own]) expect(hidden).not.toContain(_id)
  expect([hidden.size, answered]).toEqual([52, 1])
})

test('at most five invitations of one stranger are shown, for all spellings of the address', () => {
  const records = Array.from({ length: 20 }, (_, at) => by(`eve+${at}@example.com`, at))
  expect(invitedTo(records, account, new Map()).hidden.size).toBe(15)
})

test('an invitation that was withdrawn with its channel, or is still open, does not count as answered', () => {
  const record = by('ann@example.com')
  const answers = (state: string, fields?: object) =>
    invitedTo([record], account, new Map([subscription(record, state, fields)])).answered
  expect([answers('ended', { withdrawn: true }), answers('invite'), answers('ended'), answers('paused')]).toEqual([
    0, 0, 1, 1,
  ])
})

test('invitations beyond 550 are forgotten', () => {
  expect(invitedTo(strangers(700), account, new Map()).forgotten.size).toBe(150)
})
