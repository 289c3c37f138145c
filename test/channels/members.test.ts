import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  addDevice,
  channel,
  createControlDb,
  inState,
  newPerson,
  rolesOf,
  startWithMember,
  startWorker,
} from './rig.ts'

test('a member is invited, accepts, is removed and is invited again', async () => {
  const controlDb = createControlDb()
  const { couch, mails } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address.toUpperCase()] }))
  const ready = await inState(phone.couch, anns, 'photos', 'ready')
  const name = String(ready.database)

  const record = (await couch.db(controlDb).withPrefix('channel:'))[0]!
  const copy = await inState(his.couch, bobs, record._id, 'ready')
  expect(copy).toMatchObject({ name: 'photos', owner: ann.address, members: [bob.address], database: name })
  const invite = await inState(his.couch, bobs, `subscription:${record._id}`, 'invite')
  expect(invite).toMatchObject({ from: ann.address, channel_id: record._id })
  await his.couch.db(bobs).put({ ...invite, state: 'active' })
  await eventually(() => phone.couch.db(name).put({ _id: 'note', text: 'hello' }))
  await eventually(async () => expect(await his.couch.db(name).get('note')).toMatchObject({ text: 'hello' }))

  await phone.couch.db(anns).put({ ...ready, state: 'new', members: [] })
  await inState(his.couch, bobs, record._id, 'removed')
  await inState(his.couch, bobs, `subscription:${record._id}`, 'ended')
  expect(await rolesOf(couch, his)).toEqual([bob.role])
  await eventually(() => expect(his.couch.db(name).get('note')).rejects.toThrow())
  const again = await inState(phone.couch, anns, 'photos', 'ready')
  expect(again.members).toEqual([])

  await phone.couch.db(anns).put({ ...again, state: 'new', members: [bob.address] })
  await inState(his.couch, bobs, record._id, 'ready')
  await inState(his.couch, bobs, `subscription:${record._id}`, 'invite')
  await eventually(async () => expect(await his.couch.db(name).get('note')).toMatchObject({ text: 'hello' }))
  expect(mails).toEqual([])
})

test('a member’s copy follows the owner’s document: new members, new data, removed data', async () => {
  const { couch, ann, bob, phone, his, anns, bobs, record } = await startWithMember()
  const both = [bob.address, newPerson('carl').address].sort()
  const invite = await inState(his.couch, bobs, `subscription:${record._id}`, 'invite')
  await his.couch.db(bobs).put({ ...invite, state: 'active' })
  for (const request of [
    { members: both, data: { color: 'red', size: 1 } },
    { members: [bob.address], data: { color: 'blue' } },
    { members: [bob.address] },
  ]) {
    const { _rev } = await inState(phone.couch, anns, 'photos', 'ready')
    await phone.couch.db(anns).put({ ...channel(ann, 'photos', request), _rev })
    await eventually(async () => {
      const { state, members, data } = await his.couch.db(bobs).get(record._id)
      expect({ state, members, data }).toEqual({ state: 'ready', ...request })
    })
  }
  expect(await couch.db(bobs).get(record._id)).not.toHaveProperty('data')
  expect(await couch.db(bobs).get(`subscription:${record._id}`)).toMatchObject({ state: 'active' })
})

test('a member without a device gets one mail, and sees the channel after registering a device', async () => {
  const controlDb = createControlDb()
  const { couch, mails, control } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const phone = await addDevice(couch, controlDb, ann)
  const anns = await phone.database()
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  const ready = await inState(phone.couch, anns, 'photos', 'ready')
  await eventually(() => expect(mails).toHaveLength(1))
  expect(mails[0]).toMatchObject({ to: bob.address, subject: 'You are invited to a channel' })
  expect(mails[0]!.text).toContain(`${ann.address} invites you to the channel "photos"`)

  await phone.couch.db(anns).put({ ...ready, state: 'new', members: [bob.address, newPerson('carl').address] })
  await eventually(() => expect(mails).toHaveLength(2))
  const his = await addDevice(couch, controlDb, bob)
  const bobs = await his.database()
  const [record] = await control.withPrefix('channel:')
  await inState(his.couch, bobs, record!._id, 'ready')
  await inState(his.couch, bobs, `subscription:${record!._id}`, 'invite')
  expect(mails.filter(({ to }) => to === bob.address)).toHaveLength(1)
})

test('a member cannot change the channel or join another channel without an invitation', async () => {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  await phone.couch.db(anns).put(channel(ann, 'diary'))
  const diary = await inState(phone.couch, anns, 'diary', 'ready')
  await inState(phone.couch, anns, 'photos', 'ready')
  const records = await couch.db(controlDb).withPrefix('channel:')
  const record = records.find(({ name }) => name === 'photos')!
  const copy = await inState(his.couch, bobs, record._id, 'ready')
  for (const change of [{ state: 'new' }, { state: 'closing', close: 'delete' }, { members: [] }, { _deleted: true }]) {
    await expect(his.couch.db(bobs).put({ ...copy, ...change }), JSON.stringify(change)).rejects.toThrow()
  }
  const forged = [
    channel(ann, 'diary'),
    channel(bob, 'mine', { database: diary.database, owner_role: bob.role }),
    { ...channel(bob, 'theirs'), state: 'ready', database: diary.database },
    { ...channel(bob, record._id.replace(/.$/, '0')) },
  ]
  await his.couch.db(bobs).put(forged[0]!)
  const refused = await inState(his.couch, bobs, 'diary', 'error')
  expect(refused.error).toMatchObject({ code: 'not_yours' })
  for (const doc of forged.slice(1)) await expect(his.couch.db(bobs).put(doc)).rejects.toThrow()
  expect(await rolesOf(couch, his)).toEqual([bob.role, record.role])
})
