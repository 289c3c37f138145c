import { describe, expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { controlMachines, userMachines } from '../../ddocs/machines.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { fold } from '../../sidecar/docstate/conflicts/fold.ts'
import { mergeSubscription } from '../../sidecar/channels/requests/subscription-new.ts'
import { mergeChannel } from '../../sidecar/channels/requests/merge-channel.ts'
import { mergeAccount } from '../../sidecar/accounts/accounts.ts'
import { mergeRecord } from '../../sidecar/channels/records/records.ts'
import { eventually } from '../support/eventually.ts'
import { addDevice, channel, createControlDb, inState, newPerson, startWorker } from './rig.ts'

const stored = (fields: object) => ({ _id: 'a', _rev: '1-a', ...fields }) as StoredDoc

/** Merges branches as the engine does. The merge function decides which branch counts. */
function merge(
  branches: readonly [StoredDoc, StoredDoc],
  base?: StoredDoc,
  baseRev: string | null = '1-a', // the base was compacted away, if `base` is missing
  machines: Machines = userMachines,
): Doc {
  const [shown, leaf] = branches
  const [machine, resolver] =
    shown.type === 'channel'
      ? [machines.channel, mergeChannel({ now: () => 0 })]
      : [controlMachines.channel_record, mergeRecord]
  const onFault = (fault: unknown) => {
    throw new Error('the resolver failed', { cause: fault })
  }
  return fold(shown, [{ leaf, base, ...(baseRev !== null && { baseRev }) }], { machine, resolver, onFault })
}

/** Merges in both orders, whichever branch CouchDB shows. */
function eitherWay(one: StoredDoc, other: StoredDoc, base: StoredDoc | undefined | null, expected: object): void {
  // `null`: the branches have no common ancestor.
  const begin: [(StoredDoc | undefined)?, null?] = base === null ? [undefined, null] : [base]
  for (const revs of [
    ['5-a', '5-b'],
    ['5-b', '5-a'],
    ['9-a', '5-b'],
    ['5-a', '9-b'],
  ]) {
    const [first, second] = [stored({ ...one, _rev: revs[0] }), stored({ ...other, _rev: revs[1] })]
    expect(merge([first, second], ...begin), revs.join()).toMatchObject(expected)
    expect(merge([second, first], ...begin), revs.join()).toMatchObject(expected)
  }
}

const requested = stored({ type: 'channel', state: 'new', name: 'photos', owner: 'ann@example.com', members: [] })
const ready = stored({ ...requested, state: 'ready', database: 'channel-1', syncpoint: 'http://a/channel-1' })
const again = stored({ ...ready, database: 'channel-2', syncpoint: 'http://a/channel-2' })

test.each([
  ['the owner has changed the members', { members: ['b'] }, { state: 'new', members: ['b'] }],
  ['the owner has changed the data', { data: { color: 'red' } }, { state: 'new', members: [], data: { color: 'red' } }],
  ['nothing has changed', {}, { state: 'ready', members: [] }],
])('two branches of a channel merge into the right state: %s', (_, change, expected) => {
  eitherWay(ready, stored({ ...requested, ...change }), requested, { ...expected, database: 'channel-1' })
})

describe('a channel closed by one of its devices', () => {
  const closing = stored({ ...ready, state: 'closing', close: 'delete' })
  const closed = stored({ ...closing, state: 'closed' })

  test.each([
    ['a change of its members', closing, stored({ ...ready, state: 'new', members: ['b'] })],
    ['an accepted request', closing, stored({ ...ready, state: 'accepted', members: ['b'] })],
    ['a late offline edit', closed, stored({ ...ready, state: 'new', members: ['b'] })],
  ])('a closing wins over a concurrent change: %s', (_, one, other) => {
    eitherWay(one, other, ready, { state: one.state, close: 'delete', database: 'channel-1' })
    eitherWay(one, other, undefined, { state: one.state, close: 'delete', database: 'channel-1' })
  })

  test('two different closings archive the channel', () => {
    eitherWay(closing, stored({ ...closing, close: 'archive' }), ready, { state: 'closing', close: 'archive' })
  })

  test('a late closing of the earlier life does not close the channel made again', () => {
    eitherWay(closing, again, ready, { state: 'ready', database: 'channel-2' })
    eitherWay(closing, again, undefined, { state: 'new', database: 'channel-2' })
    eitherWay(closed, stored({ ...closed, state: 'new' }), closing, { state: 'new' })
  })

  test('a channel made again ignores late requests for the earlier life', () => {
    const late = stored({ ...ready, state: 'new', members: ['bob@example.com'] })
    eitherWay(late, again, ready, { state: 'ready', database: 'channel-2', members: [] })
  })

  test('a closed record stays closed, with any concurrent change beside it', () => {
    const record = stored({ type: 'channel_record', state: 'changed', life: 1, members: ['b'], former: [] })
    const end = stored({ ...record, state: 'closing', close: 'delete' })
    eitherWay(stored({ ...record, state: 'ready' }), end, record, { state: 'closing', close: 'delete' })
    eitherWay(stored({ ...end, state: 'closed' }), record, record, { state: 'closed', close: 'delete' })
    eitherWay(end, stored({ ...end, close: 'archive' }), record, { state: 'closing', close: 'archive' })
  })
})

test.each([
  ['one adds and one removes', ['bob'], [], ['bob', 'dora'], ['dora']],
  ['both add', ['bob'], ['bob', 'carl'], ['bob', 'dora'], ['bob', 'carl', 'dora']],
  ['both remove', ['bob', 'carl'], ['bob'], ['carl'], []],
  ['one changes the spelling', ['bob'], ['Bob'], ['bob', 'dora'], ['Bob', 'dora']],
])('members are merged one by one, when of two devices %s', (_, before, one, other, expected) => {
  const base = stored({ ...ready, members: before })
  const branches = [one, other].map((members) => stored({ ...ready, state: 'new', members }))
  const merged = merge([branches[0]!, branches[1]!], base)
  expect({ ...merged, members: [...(merged.members as string[])].sort() }).toMatchObject({
    ...{ state: 'new', members: [...expected].sort() },
  })
})

test('an unprocessed request is handled again, also for a refused channel', () => {
  const refused = stored({ ...requested, state: 'error', error: { code: 'bad_channel', reason: 'r', at: 't' } })
  const merged = merge([refused, stored({ ...requested, members: ['b'] })], requested)
  expect(merged).toMatchObject({ state: 'new', members: ['b'] })
  expect(merged).not.toHaveProperty('error')
})

describe('a merge without the base revision, which CouchDB has compacted away', () => {
  const at = '1970-01-01T00:00:00.000Z'
  const received = (reason: string) => ({
    code: 'changed_twice',
    reason: expect.stringContaining(reason) as string,
    at,
  })
  const late = (fields: object) => stored({ ...ready, state: 'new', ...fields })

  test('a removed member stays removed, and the channel goes to error with the other list', () => {
    const now = stored({ ...ready, members: ['carl'] })
    eitherWay(now, late({ members: ['bob', 'carl'] }), undefined, {
      ...{ state: 'error', members: ['carl'], database: 'channel-1', error: received('had members: ["bob","carl"]') },
    })
  })

  test('members that both branches request cause no error', () => {
    const now = stored({ ...ready, members: ['carl', 'dora'] })
    eitherWay(now, late({ members: ['Dora', 'carl', 'dora'] }), undefined, { state: 'ready' })
    eitherWay(now, stored({ ...ready, state: 'accepted' }), undefined, { database: 'channel-1' }) // as in a cluster
    eitherWay(now, stored({ ...ready, state: 'removed' }), undefined, { state: 'ready', members: ['carl', 'dora'] })
  })

  test('two unprocessed requests keep only the members on both lists', () => {
    eitherWay(late({ members: ['bob', 'carl'] }), late({ members: ['carl', 'dora'] }), undefined, {
      ...{ state: 'new', members: ['carl'] },
    })
  })

  test('a request for an earlier life is ignored', () => {
    const request = late({ members: ['bob'] })
    const closed = stored({ ...again, state: 'closed', close: 'archive' })
    eitherWay(closed, request, undefined, { state: 'closed', database: 'channel-2', members: [] })
    eitherWay(again, request, undefined, { state: 'new', database: 'channel-2', members: [] })
  })

  test('a long reason is cut between whole characters', () => {
    for (const length of [0, 1]) {
      const request = late({ data: { text: `${'x'.repeat(285 + length)}${'🎉'.repeat(500)}` } })
      const { error } = merge([ready, request]) as unknown as { error: { reason: string } }
      expect(() => encodeURIComponent(error.reason)).not.toThrow()
    }
  })

  test('the reason lists all conflicting requests', () => {
    const first = stored({ ...merge([ready, late({ members: ['bob'] })]), _rev: '6-a' })
    const error = { code: 'changed_twice', reason: expect.stringMatching(/bob.*carl/) as string, at }
    for (const base of [undefined, ready])
      eitherWay(first, late({ members: ['carl'] }), base, { state: 'error', error })
    eitherWay(first, late({}), ready, { state: 'error', error: received('bob') })
  })
})

describe('a merge of two channels made apart, with no common ancestor', () => {
  const at = '1970-01-01T00:00:00.000Z'
  const bobs = stored({ ...requested, members: ['bob'], data: { color: 'red' } })
  const eves = stored({ ...requested, members: ['eve'], data: { icon: 'sun' } })

  test('members of both branches are members, with or without a branch that the sidecar has processed', () => {
    for (const one of [bobs, stored({ ...ready, members: ['bob'], data: { color: 'red' } })])
      eitherWay(one, eves, null, {
        ...{
          state: 'new',
          ...(one.state === 'ready' && { database: 'channel-1' }),
          data: { color: 'red', icon: 'sun' },
        },
        members: expect.toSatisfy((members: string[]) => [...members].sort().join() === 'bob,eve') as string[],
      })
  })

  test('a branch without new requests does not start the channel again', () => {
    eitherWay(stored({ ...ready, members: ['bob'] }), stored({ ...requested, members: ['Bob'] }), null, {
      state: 'ready',
    })
  })

  test('another name puts the channel in error, with the other request in the reason', () => {
    const other = stored({ ...eves, name: 'pictures' })
    const code = 'changed_twice'
    eitherWay(ready, other, null, {
      ...{ state: 'error', name: 'photos', members: [], database: 'channel-1' },
      error: { code, at, reason: expect.stringMatching(/name: "pictures"; members: \["eve"\]/) as string },
    })
    expect(merge([bobs, stored({ ...other, _rev: '1-b' })], undefined, null)).toMatchObject({ state: 'error' })
  })
})

test('exceptions of several devices are all kept', () => {
  const base = stored({ type: 'subscription', state: 'active', devices: { a: 'paused', b: 'paused' } })
  const ours = stored({ ...base, devices: { a: 'paused', b: 'paused', c: 'paused' } })
  const theirs = stored({ ...base, devices: { a: 'active', d: 'paused' } })
  const devices = { a: 'active', c: 'paused', d: 'paused' }
  expect(mergeSubscription({ ours, theirs, base })).toMatchObject({ state: 'active', devices })
  const none = { ours: stored({ state: 'active' }), theirs: stored({ state: 'active' }), base: undefined }
  expect(mergeSubscription(none)).not.toHaveProperty('devices')
})

test('accounts and records with conflicts are resynced with the fields of both branches', () => {
  const account = stored({ type: 'account', state: 'ready', devices: ['a'], channels: [], user_id: 'user-1' })
  const other = stored({ ...account, devices: ['b'], channels: ['c'], user_id: 'user-2', database: 'userdb-2' })
  expect(mergeAccount({ ours: account, theirs: other, base: undefined })).toMatchObject({
    ...{ state: 'changed', user_id: 'user-2', database: 'userdb-2', devices: ['a', 'b'], channels: ['c'] },
  })
  const record = stored({ type: 'channel_record', state: 'ready', life: 1, members: ['b'], former: [] })
  const later = stored({ ...record, state: 'new', life: 2, members: [], former: ['d'] })
  expect(mergeRecord({ ours: record, theirs: later, base: undefined })).toMatchObject({
    ...{ state: 'new', life: 2, members: [], former: ['d', 'b'] },
  })
})

test('members changed offline, while the sidecar writes the channel, become members', async () => {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  const _rev = await phone.couch.db(anns).put(channel(ann, 'photos'))
  const [start, hash] = [Number(_rev.split('-')[0]) + 1, _rev.split('-')[1]!]
  const ready = await inState(couch, anns, 'photos', 'ready')
  const offline = {
    ...{ ...channel(ann, 'photos', { members: [bob.address] }), _rev: `${start}-${'0'.repeat(32)}` },
    _revisions: { start, ids: ['0'.repeat(32), hash] },
  }
  await phone.couch.db(anns).merge([offline])
  const copy = await inState(couch, bobs, (await couch.db(controlDb).withPrefix('channel:'))[0]!._id, 'ready')
  expect(copy).toMatchObject({ database: ready.database, members: [bob.address] })
  expect(await inState(couch, anns, 'photos', 'ready')).toMatchObject({ members: [bob.address] })
})

test('a late closing of the earlier life does not close the channel made again, in the database', async () => {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const ann = newPerson('ann')
  const phone = await addDevice(couch, controlDb, ann)
  const anns = await phone.database()
  const inDb = (state: string) => inState(couch, anns, 'photos', state)
  const put = (doc: object) => phone.couch.db(anns).put(JSON.parse(JSON.stringify(doc)) as StoredDoc)
  await phone.couch.db(anns).put(channel(ann, 'photos'))
  const first = await inDb('ready')
  await put({ ...first, state: 'closing', close: 'archive' })
  await put({ ...(await inDb('closed')), state: 'new', close: undefined })
  const second = await inDb('ready')

  const [start, hash] = [Number(first._rev.split('-')[0]) + 1, first._rev.split('-')[1]!]
  const { docstate: _entry, ...offline } = { ...first, state: 'closing', close: 'delete', docstate: undefined }
  const _revisions = { start, ids: ['0'.repeat(32), hash] }
  await phone.couch.db(anns).merge([{ ...offline, _rev: `${start}-${'0'.repeat(32)}`, _revisions }])
  await eventually(async () => {
    const leaves = await couch.db(anns).leaves('photos')
    expect(leaves.filter(({ _deleted }) => !_deleted)).toHaveLength(1)
  })
  expect(await inDb('ready')).toMatchObject({ database: second.database })
  expect((await couch.db(String(second.database)).info()).db_name).toBe(second.database)
})

test('members of both documents get access when two devices make the same channel offline', async () => {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const [ann, bob, eve] = [newPerson('ann'), newPerson('bob'), newPerson('eve')]
  const phone = await addDevice(couch, controlDb, ann)
  const [his, hers] = [await addDevice(couch, controlDb, bob), await addDevice(couch, controlDb, eve)]
  const anns = await phone.database()
  const made = ({ address }: { address: string }, hash: string) => ({
    ...{ ...channel(ann, 'photos', { members: [address] }), _rev: `1-${hash.repeat(32)}` },
    _revisions: { start: 1, ids: [hash.repeat(32)] },
  })
  await phone.couch.db(anns).merge([made(bob, 'a')])
  await inState(couch, anns, 'photos', 'ready')
  await phone.couch.db(anns).merge([made(eve, 'b')])
  const record = (await couch.db(controlDb).withPrefix('channel:'))[0]!._id
  for (const device of [his, hers]) await inState(couch, await device.database(), record, 'ready')
  const members = [bob.address, eve.address]
  expect(await inState(couch, anns, 'photos', 'ready')).toMatchObject({
    members: expect.arrayContaining(members) as [],
  })
})
