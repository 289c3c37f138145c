import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { databaseNameOf } from '../../sidecar/channels/channel-names.ts'
import { addDevice, channel, createControlDb, inState, newPerson, startWorker } from './rig.ts'

test('the name of a channel’s database follows from its owner’s user id, which members cannot read', async () => {
  const controlDb = createControlDb()
  const { couch, control } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  const { database } = await inState(couch, anns, 'photos', 'ready')
  const accounts = await control.withPrefix('account:')
  const { user_id } = accounts.find(({ address }) => address === ann.address)!
  expect(database).toBe(databaseNameOf(String(user_id), 'photos', 1))

  const [record] = await control.withPrefix('channel:')
  const copy = await inState(his.couch, bobs, record!._id, 'ready')
  expect(JSON.stringify(copy)).not.toContain(user_id)
  const guess = createHash('sha256')
    .update(JSON.stringify([copy._id, 1]))
    .digest('hex')
  expect(database).not.toBe(`channel-${guess.slice(0, 32)}`)
})
