/** A device was offline while CouchDB compacted the database, which CouchDB does automatically. */
import { expect, test } from 'vitest'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { compactAway, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { channelOf, newAddress, registerDevice, startDevice, startStage, untilStatus, type Device } from './stage.ts'

const NOWHERE = 'http://127.0.0.1:9'

test('requests made offline are merged or put in error, and the server refuses none', async () => {
  needs('guarded revisions')
  const stage = await startStage()
  const ann = newAddress('ann')
  const [phone, tablet] = [await startDevice(stage), await startDevice(stage)]
  await registerDevice(stage, phone, ann, 'phone')
  await registerDevice(stage, tablet, ann, 'tablet')
  const [photos, notes] = await Promise.all(['photos', 'notes'].map((name) => phone.client.createChannel({ name })))
  const areSynced = ({ client }: Device) =>
    untilStatus(client, ({ channels }) => channels.length === 2 && channels.every(({ place }) => place === 'synced'))
  await Promise.all([areSynced(phone), areSynced(tablet)])
  await phone.client.stop()

  const { client: offline } = await startDevice(stage, { folder: phone.folder, couchdb: NOWHERE })
  await offline.setMembers(photos!, ['carl@example.com'])
  await offline.pause(notes!, { onlyHere: true })
  await offline.stop()

  const theirs = stage.admin.db((await stage.control.withPrefix('account:'))[0]!.database as string)
  const before = (await Promise.all([photos!, `subscription:${notes}`].map((id) => theirs.find(id)))) as StoredDoc[]
  await tablet.client.changeChannel(photos!, { data: { color: 'red' } })
  await untilStatus(tablet.client, () => channelOf(tablet.client, photos!).data?.color === 'red')
  await tablet.client.pause(notes!)
  await eventually(async () => {
    expect(await theirs.find(photos!)).toMatchObject({ state: 'ready', data: { color: 'red' } })
    expect(await theirs.find(`subscription:${notes}`)).toMatchObject({ state: 'paused' })
  })
  await compactAway(theirs, before)

  const { client } = await startDevice(stage, { folder: phone.folder })
  const refused: string[] = []
  client.on('refused', ({ id }) => refused.push(id))
  await untilStatus(client, () => channelOf(client, photos!).state === 'error')
  expect(channelOf(client, photos!)).toMatchObject({ members: [], data: { color: 'red' }, place: 'synced' })
  expect(channelOf(client, photos!).error).toMatchObject({
    ...{ code: 'changed_twice', reason: expect.stringContaining('carl@example.com') as string },
  })
  // The channel exists already. An app may repeat this call at each start.
  await client.createChannel({ id: photos!, name: 'photos' })
  expect(channelOf(client, photos!).state).toBe('error')
  await client.setMembers(photos!, ['carl@example.com'])
  for (const one of [client, tablet.client]) {
    await untilStatus(
      one,
      () => channelOf(one, photos!).state === 'ready' && channelOf(one, photos!).members.length === 1,
    )
  }
  // Only this device must show the pause. The state on other devices is not defined.
  await untilStatus(client, () => channelOf(client, notes!).place === 'paused')
  expect(refused).toEqual([])
})
