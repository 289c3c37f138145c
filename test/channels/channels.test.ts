import { expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { addDevice, channel, createControlDb, inState, newPerson, startWorker } from './rig.ts'

test('a channel is made, and synced by all devices of its owner', async () => {
  const controlDb = createControlDb()
  const { couch } = startWorker(controlDb)
  await inState(couch, controlDb, 'none', 'none').catch(() => undefined)
  const ann = newPerson('ann')
  const phone = await addDevice(couch, controlDb, ann)
  const database = await phone.database()
  await phone.couch.db(database).put(channel(ann, 'photos'))
  const ready = await inState(phone.couch, database, 'photos', 'ready')
  expect(ready).toMatchObject({ name: 'photos', owner: ann.address, owner_role: ann.role, members: [] })
  const subscription = await inState(phone.couch, database, 'subscription:photos', 'active')
  expect(subscription).toMatchObject({ type: 'subscription', channel_id: 'photos' })
  const description = await phone.couch.db(String(ready.database)).get('description')
  expect(description).toMatchObject({ name: 'photos', owner: ann.address })
  await phone.couch.db(String(ready.database)).put({ _id: 'note', text: 'hello' })
  void createTestCouch
})
