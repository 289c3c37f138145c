/** Channels that are closed, refused, or made again. */
import { expect, test } from 'vitest'
import { startWorker } from '../channels/rig.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { hasNoteOnceSynced, lacksNote, startRegistered, untilLive, untilPlace } from './notes.ts'
import { channelOf, newAddress, startStage, untilStatus, type Stage } from './stage.ts'

/** Accepts the request of the only user and does no more, like a sidecar that dies then. */
async function accept({ control, admin }: Stage, id: string): Promise<void> {
  const [home] = await control.withPrefix('database:')
  const database = admin.db(home!._id.slice('database:'.length))
  await eventually(async () => {
    const request = await database.get(id)
    expect(request.state).toBe('new')
    await database.put({ ...request, state: 'accepted' })
  })
}

test('a channel made again gets another local database, and the first one keeps its data', async () => {
  const stage = await startStage()
  const phone = await startRegistered(stage)
  const { client } = phone
  const id = await client.createChannel({ name: 'photos' })
  const first = client.open(id)
  await first.put({ _id: 'of the first life' })
  await untilStatus(client, () => channelOf(client, id).sync.written === 1)
  await client.closeChannel(id, 'delete')
  await untilStatus(client, () => channelOf(client, id).state === 'closed')
  expect(channelOf(client, id)).toMatchObject({ place: 'closed', sync: { state: 'off' } })
  expect(client.open(id)).toBe(first)

  expect(await client.createChannel({ id, name: 'photos' })).toBe(id)
  const second = client.open(id)
  expect(second).not.toBe(first)
  await second.put({ _id: 'of the second life' })
  await untilLive(phone, id)
  expect(client.open(id)).toBe(second)
  await untilStatus(client, () => channelOf(client, id).sync.written === 1)
  await lacksNote(phone, id, 'of the first life')
  expect(await first.get('of the first life')).toMatchObject({ _id: 'of the first life' })
})

thoroughTest('a forgotten or unknown channel has a local database at once when it is made again', async () => {
  const stage = await startStage()
  const ann = newAddress('ann')
  const phone = await startRegistered(stage, ann)
  const id = await phone.client.createChannel({ name: 'photos' })
  await untilLive(phone, id)
  await phone.client.closeChannel(id, 'delete')
  await untilStatus(phone.client, () => channelOf(phone.client, id).state === 'closed')
  await phone.client.forget(id)
  expect(() => phone.client.open(id)).toThrow(expect.objectContaining({ code: 'unknown' }) as Error)
  const tablet = await startRegistered(stage, ann, 'tablet')
  await untilPlace(tablet, id, 'closed')

  await stage.couch.down()
  for (const { client } of [phone, tablet]) {
    await client.createChannel({ id, name: 'photos' })
    expect(channelOf(client, id)).toMatchObject({ place: 'unready', local: expect.any(String) as string })
  }
  await phone.client.open(id).put({ _id: 'from the phone' })
  await tablet.client.open(id).put({ _id: 'from the tablet' })
  await stage.couch.up()
  await hasNoteOnceSynced(phone, id, 'from the tablet')
  await hasNoteOnceSynced(tablet, id, 'from the phone')
})

thoroughTest(
  'a refused channel shows the reason, and can be requested again under the same id with another name',
  async () => {
    const stage = await startStage()
    const { client } = await startRegistered(stage)
    await client.createChannel({ name: 'photos' })
    const id = await client.createChannel({ name: 'photos' })
    await untilStatus(client, ({ channels }) => channels.some(({ state }) => state === 'error'))
    const failed = client.status.channels.find(({ state }) => state === 'error')!
    expect(failed.error).toMatchObject({ code: 'name_taken', reason: expect.stringContaining('photos') as string })
    const other = await client.createChannel({ name: 'photos' })
    await untilStatus(client, () => channelOf(client, other).state === 'error')
    await client.closeChannel(other, 'delete')
    await untilStatus(client, () => channelOf(client, other).state === 'closed')
    await client.open(failed.id).put({ _id: 'note' })
    await client.createChannel({ id: failed.id, name: 'other photos' })
    await untilStatus(client, () => channelOf(client, failed.id).sync.written === 1)
    const open = client.status.channels.filter(({ state }) => state !== 'closed')
    expect(open.map(({ name }) => name)).toEqual(['other photos', 'photos'])
    expect(client.status.channels.map((channel) => channel.id)).toContain(id)
  },
)

test('an accepted channel can be closed before its database is created', async () => {
  const stage = await startStage()
  const { client } = await startRegistered(stage)
  await stage.stopWorker()
  const id = await client.createChannel({ name: 'photos' })
  await accept(stage, id)
  await untilStatus(client, () => channelOf(client, id).state === 'accepted')
  await client.closeChannel(id, 'delete')
  await startWorker(stage.control.name)
  await untilStatus(client, () => channelOf(client, id).state === 'closed')
})

thoroughTest('a channel that is being made again cannot be closed before it is ready', async () => {
  const stage = await startStage()
  const { client } = await startRegistered(stage)
  const id = await client.createChannel({ name: 'photos' })
  await untilStatus(client, () => channelOf(client, id).state === 'ready')
  await client.closeChannel(id, 'delete')
  await untilStatus(client, () => channelOf(client, id).state === 'closed')
  await stage.stopWorker()
  await client.createChannel({ id, name: 'photos' })
  await accept(stage, id)
  await untilStatus(client, () => channelOf(client, id).state === 'accepted')
  await expect(client.closeChannel(id, 'delete')).rejects.toMatchObject({ code: 'wrong_state' })
})
