/** A local store that refuses writes, as with a full disk, and a client after `destroy`. */
import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import {
  channelOf,
  newAddress,
  PouchDB,
  registerDevice,
  startDevice,
  startStage,
  untilStatus,
  type TestDb,
} from './stage.ts'

type Constructor = new (name: string, options?: object) => TestDb

/** PouchDB with a control database that refuses writes while `disk.isFull`. */
function withDisk(folder: string, disk: { isFull: boolean }): Constructor {
  const Real: Constructor = PouchDB.defaults({ prefix: `${folder}/` })
  function Faulty(name: string, options?: object): TestDb {
    const db = new Real(name, options)
    if (!name.endsWith('-control')) return db
    const put = db.put.bind(db)
    db.put = (doc) => (disk.isFull ? Promise.reject(new Error('QuotaExceededError')) : put(doc))
    return db
  }
  return Object.assign(Faulty, Real)
}

/** A new device. */
async function startWithDisk() {
  const stage = await startStage()
  const { client, folder } = await startDevice(stage)
  await client.stop()
  const disk = { isFull: false }
  return { stage, disk, ...(await startDevice(stage, { folder, PouchDB: withDisk(folder, disk) })) }
}

test('a registration survives a disk that is full for a while', async () => {
  const { stage, disk, client } = await startWithDisk()
  const ann = newAddress('ann')
  await client.register({ owner: ann })
  disk.isFull = true
  await untilStatus(client, ({ registration }) => registration.failure?.code === 'failed')
  await expect(client.confirm('a-code')).rejects.toThrow('QuotaExceededError')
  expect(client.status.registration.state).toBe('unsent')
  disk.isFull = false
  await eventually(() => expect(stage.linksTo(ann)).toHaveLength(1))
  await untilStatus(client, ({ registration: { state, failure } }) => state === 'confirming' && !failure)
})

thoroughTest('a channel that becomes ready while the disk is full is synced afterwards', async () => {
  const { stage, disk, folder, ...device } = await startWithDisk()
  const { client } = device
  await registerDevice(stage, { ...device, folder }, newAddress('ann'))
  await stage.couch.down()
  const id = await client.createChannel({ name: 'photos' })
  disk.isFull = true
  await stage.couch.up()
  await untilStatus(client, ({ registration }) => registration.failure?.code === 'failed')
  await untilStatus(client, () => channelOf(client, id).place === 'synced')
  expect(channelOf(client, id).sync.state).toBe('off')
  disk.isFull = false
  await untilStatus(client, ({ registration }) => channelOf(client, id).sync.state === 'live' && !registration.failure)
})

test('an app starts with a full disk, and continues when the disk has space again', async () => {
  const { stage, disk, folder, client } = await startWithDisk()
  const ann = newAddress('ann')
  await client.register({ owner: ann })
  await client.stop()
  // Stored, but not processed by a client.
  const control = new (PouchDB.defaults({ prefix: `${folder}/` }))('app-control')
  await control.put({ _id: 'photos', type: 'channel', state: 'new', name: 'photos', owner: ann })
  await control.close()

  disk.isFull = true
  const again = await startDevice(stage, { folder, PouchDB: withDisk(folder, disk) })
  expect(channelOf(again.client, 'photos')).toMatchObject({ place: 'unready' })
  disk.isFull = false
  await eventually(() => expect(again.client.open('photos')).toBeDefined())
})

test('a client with a full disk can be stopped and destroyed', async () => {
  const { disk, client, folder } = await startWithDisk()
  await client.register({ owner: newAddress('ann') })
  disk.isFull = true
  await untilStatus(client, ({ registration }) => registration.failure !== undefined)
  await client.stop()
  await client.destroy()
  expect(await readdir(folder)).toEqual([])
})

test('destroy removes all local data, and the device can register again', async () => {
  const stage = await startStage()
  const device = await startDevice(stage)
  const { client, folder } = device
  const ann = newAddress('ann')
  await registerDevice(stage, device, ann)
  const id = await client.createChannel({ name: 'photos' })
  await client.open(id).put({ _id: 'note' })
  await untilStatus(client, () => channelOf(client, id).sync.written === 1)
  await client.destroy()
  expect(await readdir(folder)).toEqual([])
  expect(client.status).toMatchObject({ registration: { state: 'none' }, channels: [], devices: [] })
  await client.destroy() // changes nothing

  const again = await startDevice(stage, { folder })
  expect(again.client.status.registration).toEqual({ state: 'none' })
  await registerDevice(stage, again, ann)
  await untilStatus(again.client, ({ channels }) => channels[0]?.sync.state === 'live')
  expect(await again.client.open(id).get('note')).toMatchObject({ _id: 'note' })
})
