import { expect, test } from 'vitest'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { mergeChannel, mergeSubscription } from '../../sidecar/channels/wishes/merge.ts'
import { mergeAccount } from '../../sidecar/accounts/handlers.ts'
import { mergeRecord } from '../../sidecar/channels/records/merge.ts'
import { addDevice, channel, createControlDb, inState, newPerson, startWorker } from './rig.ts'

const stored = (fields: object) => ({ _id: 'a', _rev: '1-a', ...fields }) as StoredDoc

test.each([
  ['the owner has changed the members', { members: ['b'] }, { state: 'new', members: ['b'] }],
  ['the owner has changed the data', { data: { color: 'red' } }, { state: 'new', members: [], data: { color: 'red' } }],
  ['nobody has changed anything', {}, { state: 'ready', members: [] }],
])('a channel that was written twice is asked for anew if %s', (_, change, expected) => {
  const base = stored({ type: 'channel', state: 'new', members: [] })
  const ours = stored({ ...base, state: 'ready', database: 'channel-1' })
  const theirs = stored({ ...base, ...change })
  expect(mergeChannel({ ours, theirs, base })).toMatchObject({ ...expected, database: 'channel-1' })
})

test('a channel that is being closed stays so', () => {
  const base = stored({ type: 'channel', state: 'ready', members: [] })
  const ours = stored({ ...base, state: 'closing', close: 'archive' })
  expect(mergeChannel({ ours, theirs: stored({ ...base, state: 'new', members: ['b'] }), base })).toMatchObject({
    state: 'closing',
  })
})

test('exceptions that several devices have made are all kept', () => {
  const base = stored({ type: 'subscription', state: 'active', devices: { a: 'paused', b: 'paused' } })
  const ours = stored({ ...base, devices: { a: 'paused', b: 'paused', c: 'paused' } })
  const theirs = stored({ ...base, devices: { a: 'active', d: 'paused' } })
  const devices = { a: 'active', c: 'paused', d: 'paused' }
  expect(mergeSubscription({ ours, theirs, base })).toMatchObject({ state: 'active', devices })
  const none = { ours: stored({ state: 'active' }), theirs: stored({ state: 'active' }), base: undefined }
  expect(mergeSubscription(none)).not.toHaveProperty('devices')
})

test('accounts and records that were written twice are looked at again, with all that either knew', () => {
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

test('members that were changed offline, while the sidecar wrote the channel, are members in the end', async () => {
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
