import { expect, test } from 'vitest'
import type { Status } from '../../client/src/index.ts'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { hasNote, hasNoteOnceSynced, lacksNote, startRegistered, untilLive, untilPlace } from './notes.ts'
import { channelOf, newAddress, registerDevice, startStage, untilStatus, type Device } from './stage.ts'

test('a channel syncs between all devices of its owner', async () => {
  const stage = await startStage()
  const ann = newAddress('ann')
  const phone = await startRegistered(stage, ann)
  const tablet = await startRegistered(stage, ann, 'tablet')
  const id = await phone.client.createChannel({ name: 'photos', data: { color: 'red' } })
  await phone.client.open(id).put({ _id: 'from the phone' })
  await untilLive(tablet, id)
  await hasNote(tablet, id, 'from the phone')
  await tablet.client.open(id).put({ _id: 'from the tablet' })
  await hasNote(phone, id, 'from the tablet')
  expect(channelOf(tablet.client, id)).toMatchObject({ name: 'photos', isOwner: true, data: { color: 'red' } })
  await eventually(() => expect(channelOf(tablet.client, id).sync).toMatchObject({ written: 1, pending: 0 }))
  expect(tablet.client.status.devices.map(({ name, isThis }) => [name, isThis])).toEqual([
    ['phone', false],
    ['tablet', true],
  ])
})

test('a member who accepts gets the notes, and after the removal keeps them and gets no new ones', async () => {
  const stage = await startStage()
  const [ann, bob] = [newAddress('ann'), newAddress('bob')]
  const [phone, his] = [await startRegistered(stage, ann), await startRegistered(stage, bob)]
  const id = await phone.client.createChannel({ name: 'photos', members: [bob] })
  await phone.client.open(id).put({ _id: 'first' })
  await untilPlace(his, 'photos', 'invited')
  const theirs = channelOf(his.client, 'photos')
  expect(theirs).toMatchObject({ isOwner: false, owner: ann, from: ann, members: [bob], sync: { state: 'off' } })
  await expect(his.client.setMembers(theirs.id, [])).rejects.toMatchObject({ code: 'not_yours' })

  await his.client.accept(theirs.id)
  await hasNote(his, 'photos', 'first')
  await his.client.open(theirs.id).put({ _id: 'his' })
  await hasNote(phone, id, 'his')

  await phone.client.setMembers(id, [])
  await untilPlace(his, 'photos', 'removed')
  await phone.client.open(id).put({ _id: 'second' })
  await untilStatus(phone.client, () => channelOf(phone.client, id).sync.written >= 2)
  expect(channelOf(his.client, 'photos').sync.state).toBe('off')
  await lacksNote(his, 'photos', 'second')
  await hasNote(his, 'photos', 'first')
  const reason = expect.stringContaining('got one that is removed') as string
  await expect(his.client.accept(theirs.id)).rejects.toMatchObject({ code: 'wrong_state', message: reason })

  await his.client.forget(theirs.id)
  expect(() => his.client.open(theirs.id)).toThrow(expect.objectContaining({ code: 'unknown' }) as Error)

  await phone.client.setMembers(id, [bob])
  await untilPlace(his, 'photos', 'invited')
  await his.client.decline(theirs.id)
  await untilPlace(his, 'photos', 'ended')
  await his.client.accept(theirs.id)
  await hasNote(his, 'photos', 'second')
})

thoroughTest('a channel can be paused and resumed on all devices, or on one device', async () => {
  const stage = await startStage()
  const ann = newAddress('ann')
  const phone = await startRegistered(stage, ann)
  const tablet = await startRegistered(stage, ann, 'tablet')
  const id = await phone.client.createChannel({ name: 'photos' })
  await expect(phone.client.pause(id)).rejects.toMatchObject({ code: 'wrong_state' })
  await untilLive(phone, id)
  await untilLive(tablet, id)

  // Each device waits for the change of the other, to avoid a conflict.
  const listenTo = ({ client }: Device) => {
    const { read } = client.status.control
    return untilStatus(client, ({ control }) => control.read > read)
  }
  const first = listenTo(tablet)
  await phone.client.pause(id, { onlyHere: true })
  expect(channelOf(phone.client, id)).toMatchObject({ place: 'paused', onlyHere: true })
  await phone.client.open(id).put({ _id: 'written in the pause' })
  await untilLive(tablet, id)
  await lacksNote(tablet, id, 'written in the pause')
  await first

  const second = listenTo(phone)
  await tablet.client.pause(id)
  await untilPlace(tablet, id, 'paused')
  await second
  await phone.client.resume(id, { onlyHere: true })
  await untilLive(phone, id)
  expect(channelOf(tablet.client, id)).toMatchObject({ place: 'paused', sync: { state: 'off' } })
  await untilStatus(phone.client, () => channelOf(phone.client, id).sync.written === 1)
  await lacksNote(tablet, id, 'written in the pause')

  await phone.client.resume(id)
  await hasNote(tablet, id, 'written in the pause')
  await untilStatus(phone.client, () => !channelOf(phone.client, id).onlyHere)
})

thoroughTest('a paused or ended channel that is forgotten has no local database until it syncs again', async () => {
  const stage = await startStage()
  const phone = await startRegistered(stage)
  const { client } = phone
  const id = await client.createChannel({ name: 'photos' })
  await client.open(id).put({ _id: 'note' })
  await untilStatus(client, () => channelOf(client, id).sync.written === 1)
  await expect(client.forget(id)).rejects.toMatchObject({ code: 'in_use' })
  const steps = [
    [() => client.pause(id), () => client.resume(id)],
    [() => client.end(id), () => client.accept(id)],
  ] as const
  for (const [leave, comeBack] of steps) {
    await leave()
    expect(channelOf(client, id)).toHaveProperty('local')
    await client.forget(id)
    expect(channelOf(client, id)).not.toHaveProperty('local')
    expect(() => client.open(id)).toThrow(expect.objectContaining({ code: 'unknown' }) as Error)
    await comeBack()
    await hasNoteOnceSynced(phone, id, 'note')
  }
})

test('a revoked device shows that state, stops syncing, and keeps its data', async () => {
  const stage = await startStage()
  const ann = newAddress('ann')
  const phone = await startRegistered(stage, ann)
  const tablet = await startRegistered(stage, ann, 'tablet')
  const id = await phone.client.createChannel({ name: 'photos' })
  await phone.client.open(id).put({ _id: 'before' })
  await hasNoteOnceSynced(tablet, id, 'before')
  await untilStatus(phone.client, ({ devices }) => devices.length === 2)
  const { user } = tablet.client.status.registration
  await phone.client.revokeDevice(user!)
  // The next request is refused; a request that is already open can take 25 s.
  const isRevoked = ({ registration }: Status) => registration.state === 'revoked'
  const revoked = await untilStatus(tablet.client, isRevoked)
  expect(revoked.control.state).toBe('off')
  expect(channelOf(tablet.client, id).sync.state).toBe('off')
  await hasNote(tablet, id, 'before')
  await untilStatus(phone.client, ({ devices }) => devices.some(({ state }) => state === 'revoked'))

  await tablet.client.register({ owner: ann, name: 'tablet, again' })
  await registerDevice(stage, tablet, ann, 'tablet, again')
  await phone.client.open(id).put({ _id: 'after' })
  await hasNote(tablet, id, 'after')
})

thoroughTest('createChannel and changeChannel reject values that no server accepts', async () => {
  const stage = await startStage()
  const { client } = await startRegistered(stage)
  const half = '\ud83d'
  for (const wrong of [
    ...['', ' ', 'two\nlines', half, 'x'.repeat(101)].map((name) => ({ name })),
    ...[half, 'a\u0000b', '_a', 'channel:a', 'x'.repeat(181)].map((id) => ({ name: 'photos', id })),
    ...[{ [half]: 1 }, { deep: [{ text: half }] }, { text: 'ä'.repeat(2048) }, [] as object].map((data) => ({
      ...{ name: 'photos', data: data as Record<string, unknown> },
    })),
    { name: 'photos', members: Array<string>(251).fill('bob@example.com') },
    { name: 'photos', members: Array<string>(100).fill(`bob@${'x'.repeat(180)}.example.com`) },
  ]) {
    await expect(client.createChannel(wrong), JSON.stringify(wrong)).rejects.toMatchObject({ code: 'bad_argument' })
  }
  const id = await client.createChannel({ name: 'photos 📷', data: { text: '📷\n' } })
  await client.changeChannel(id, { data: { color: 'red' } })
  await client.changeChannel(id, { members: [] })
  await untilStatus(client, () => channelOf(client, id).data?.color === 'red')
  await client.changeChannel(id, { data: null })
  await untilStatus(client, () => channelOf(client, id).data === undefined)
  await expect(client.changeChannel(id, { data: { text: half } })).rejects.toMatchObject({ code: 'bad_argument' })
  await untilStatus(client, () => channelOf(client, id).state === 'ready')
})

test('a document that the channel refuses raises an event, and does not stop the sync', async () => {
  needs('refusals by status')
  const stage = await startStage()
  const phone = await startRegistered(stage)
  const { client } = phone
  const refused: unknown[] = []
  client.on('refused', (event) => refused.push(event))
  const id = await client.createChannel({ name: 'photos' })
  await client.open(id).put({ _id: 'description', name: 'mine' })
  await client.open(id).put({ _id: 'note' })
  await untilStatus(client, () => channelOf(client, id).sync.written === 1)
  expect(refused).toContainEqual({
    channel: id,
    id: 'description',
    reason: expect.stringContaining('sidecar') as string,
  })
})
