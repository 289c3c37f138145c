/** Access is taken whatever stands in the way of telling so. */
import { expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { addDevice, channel, createControlDb, inState, newPerson, rolesOf, startWorker } from './rig.ts'

async function startWithMember() {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  const ready = await inState(couch, anns, 'photos', 'ready')
  const [record] = await couch.db(controlDb).withPrefix('channel:')
  await inState(couch, bobs, record!._id, 'ready')
  expect(await rolesOf(couch, his)).toEqual([bob.role, record!.role])
  const removeBob = () => phone.couch.db(anns).put({ ...ready, state: 'new', members: [] })
  return { couch, phone, his, bob, bobs, record: record!, removeBob }
}

test('of a member who has filled his own database with what nobody can read together', async () => {
  const { couch, his, bob, bobs, record, removeBob } = await startWithMember()
  const text = 'x'.repeat(7_900_000)
  for (let i = 0; i < 9; i++) {
    const hash = String(i).repeat(32)
    const revision = { _rev: `9-${hash}`, _revisions: { start: 9, ids: [hash] } }
    await his.couch.db(bobs).merge([{ ...revision, _id: `subscription:${record._id}`, type: 'note', text }])
  }
  await removeBob()
  await eventually(async () => expect(await rolesOf(couch, his)).toEqual([bob.role]))
  await inState(couch, bobs, record._id, 'removed')
})

test('of a user whose document a cluster has taken twice', async () => {
  const { his, bob, removeBob } = await startWithMember()
  const users = createTestCouch().db('_users')
  const id = `org.couchdb.user:${his.user}`
  const user = (await users.find(id))!
  const [start, hash] = [Number(user._rev.split('-')[0]), '0'.repeat(32)]
  await users.merge([{ ...user, _rev: `${start}-${hash}`, _revisions: { start, ids: [hash] }, note: 'beside it' }])
  expect(await users.leaves(id)).toHaveLength(2)
  await removeBob()
  await eventually(async () => {
    const leaves = (await users.leaves(id)).filter(({ _deleted }) => !_deleted)
    expect(leaves.map(({ roles }) => roles)).toEqual([[bob.role]])
  })
})
