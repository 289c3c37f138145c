import { expect, test } from 'vitest'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { channel, inState, startWithOwner } from './rig.ts'

test('an invalid channel goes to error with a code and a reason', async () => {
  const { couch, control, ann, database, own } = await startWithOwner({ config: { channelsPerOwner: 1 } })
  await own.put(channel(ann, 'photos'))
  await inState(couch, database, 'photos', 'ready')
  const wrong: [id: string, doc: object, code: string, reason: RegExp][] = [
    ['nameless', { name: undefined }, 'bad_channel', /^name: expected 1 to 100 characters .* got nothing/],
    ['empty', { name: '' }, 'bad_channel', /^name: .* got ""/],
    ['ownerless', { owner: undefined }, 'bad_channel', /^owner: expected an email address, got nothing/],
    ["another's", { owner: 'bob@example.com' }, 'not_yours', /^owner: expected ann-.*, got bob@example.com/],
    ['again', { name: ' photos ' }, 'name_taken', /you have a channel called " photos ": photos/],
    [
      'crowd',
      { members: Array(251).fill('a@example.com') },
      'bad_channel',
      /^members: expected an array of up to 250 .* got 251/,
    ],
    [
      'chatter',
      { members: Array.from({ length: 100 }, (_, i) => `bob@${'x'.repeat(180)}${i}.example.com`) },
      'bad_channel',
      /^members: expected up to 16384 bytes of JSON, got \d{5}/,
    ],
    ['pages', { data: { text: 'ä'.repeat(2048) } }, 'bad_channel', /^data: expected .* 4096 bytes of JSON, got 4107/],
    ['nobody', { members: ['bob'] }, 'bad_channel', /^members: expected email addresses, got "bob"/],
    ['text', { members: 'bob@example.com' }, 'bad_channel', /^members: expected an array/],
    ['more', { color: 'red' }, 'bad_channel', /expected no fields but .* got "color"/],
    ['second', {}, 'too_many_channels', /an owner may have 1 channels/],
  ]
  for (const [id, fields] of wrong) await own.put(JSON.parse(JSON.stringify(channel(ann, id, fields))) as Doc)
  for (const [id, , code, reason] of wrong) {
    const { error } = await inState(couch, database, id, 'error')
    expect(error, id).toMatchObject({ code, reason: expect.stringMatching(reason) as string })
  }
  expect(await control.withPrefix('channel:')).toHaveLength(1)
})

test('a subscription needs a channel with a matching id', async () => {
  const { couch, ann, phone, database, own } = await startWithOwner()
  const subscription = (channel_id: string, _id = `subscription:${channel_id}`) => ({
    ...{ _id, type: 'subscription', state: 'new', channel_id },
  })
  await own.put(subscription('later'))
  await own.put(subscription('later', 'wrong'))
  await own.put({ _id: 'setting', type: 'setting' })
  await own.put(subscription('setting'))
  expect((await inState(couch, database, 'wrong', 'error')).error).toMatchObject({ code: 'bad_subscription' })
  expect((await inState(couch, database, 'subscription:setting', 'error')).error).toMatchObject({ code: 'no_channel' })
  await own.put(channel(ann, 'later'))
  const active = await inState(couch, database, 'subscription:later', 'active')
  await own.put({ ...active, state: 'paused', devices: { [phone.user]: 'active' } })
  const paused = await inState(couch, database, 'subscription:later', 'paused')
  await own.put({ ...paused, state: 'ended' })
  await inState(couch, database, 'later', 'ready')
  expect((await inState(couch, database, 'subscription:later', 'ended')).state).toBe('ended')
})

thoroughTest('a channel in error accepts a subscription', async () => {
  const { couch, ann, database, own } = await startWithOwner()
  await own.put(channel(ann, 'photos', { members: ['bob'] }))
  const { _rev } = await inState(couch, database, 'photos', 'error')
  await own.put({ _id: 'subscription:photos', type: 'subscription', state: 'new', channel_id: 'photos' })
  await inState(couch, database, 'subscription:photos', 'active')
  await own.put({ ...channel(ann, 'photos'), _rev })
  await inState(couch, database, 'photos', 'ready')
})

test('a channel keeps its name, with or without its database field', async () => {
  const { couch, control, ann, database, own } = await startWithOwner()
  await own.put(channel(ann, 'photos', { data: { color: 'red' } }))
  const ready = await inState(couch, database, 'photos', 'ready')
  for (const fields of [{ name: 'pictures' }, { name: 'pictures', database: undefined, syncpoint: undefined }]) {
    const { _rev } = await own.get('photos')
    await own.put(JSON.parse(JSON.stringify({ ...ready, ...fields, _rev, state: 'new' })) as Doc)
    const { error } = await inState(couch, database, 'photos', 'error')
    expect(error).toMatchObject({
      code: 'renamed',
      reason: expect.stringMatching(/^name: expected "photos"/) as string,
    })
  }
  const { _rev } = await own.get('photos')
  await own.put({ ...channel(ann, 'photos', { data: { color: 'blue' } }), _rev })
  expect(await inState(couch, database, 'photos', 'ready')).toMatchObject({ database: ready.database, name: 'photos' })
  expect(await control.withPrefix('channel:')).toMatchObject([{ name: 'photos', data: { color: 'blue' } }])
})

thoroughTest(
  'an active device without an owner, which only an admin can write, goes to error with the reason',
  async () => {
    const { couch, controlDb } = await startWithOwner()
    for (const state of ['active', 'revoked']) await couch.db(controlDb).put({ _id: state, type: 'device', state })
    expect((await inState(couch, controlDb, 'active', 'error')).error).toMatchObject({
      code: 'bad_device',
      reason: 'owner: expected an email address, got nothing',
    })
    await eventually(async () => {
      expect((await couch.db(controlDb).get('revoked')).docstate).toMatchObject({
        handled: expect.any(String) as string,
      })
    })
  },
)
