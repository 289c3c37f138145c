/** Offline changes to documents whose base revision a compaction has removed. */
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Leaf, StoredDoc } from '../../sidecar/couch/documents.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { compactAway, needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { sample, thoroughTest } from '../support/thorough.ts'
import { addDevice, channel, inState, rolesOf, startWithMember, startWithOwner } from './rig.ts'

/** An offline change to this revision after `steps` revisions, as replication sends it. */
function offline({ _rev, docstate: _entry, ...before }: StoredDoc, change: object, steps = 1): Leaf {
  const [generation, hash] = _rev.split('-')
  const [start, made] = [Number(generation) + steps, ['c', 'b', 'a'].slice(0, steps).map((digit) => digit.repeat(32))]
  return { ...before, ...change, _rev: `${start}-${made[0]}`, _revisions: { start, ids: [...made, hash!] } }
}

const leavesOf = async (database: Database, id: string) =>
  (await database.leaves(id)).filter(({ _deleted }) => _deleted !== true)

thoroughTest(
  'conflicting lists of members put the channel in error with a reason, and the owner can request them again',
  async () => {
    needs('guarded revisions')
    const { couch, ann, database, own } = await startWithOwner()
    const db = couch.db(database)
    await own.put(channel(ann, 'photos', { members: ['carl@example.com'] }))
    const before = await inState(couch, database, 'photos', 'ready')
    await own.put({ ...before, state: 'new', members: [] })
    const after = await eventually(async () => {
      const doc = await inState(couch, database, 'photos', 'ready')
      expect(doc.members).toEqual([])
      return doc
    })
    await compactAway(db, [before])

    await own.merge([offline(before, { state: 'new', members: ['carl@example.com', 'dora@example.com'] })])
    const received = await inState(couch, database, 'photos', 'error')
    expect(received).toMatchObject({ members: [], database: after.database, error: { code: 'changed_twice' } })
    expect((received.error as { reason: string }).reason).toContain('dora@example.com')
    await eventually(async () => expect(await leavesOf(db, 'photos')).toHaveLength(1))
    const { error: _error, ...rest } = received
    await own.put({ ...rest, state: 'new', members: ['dora@example.com'] })
    expect(await inState(couch, database, 'photos', 'ready')).toMatchObject({ members: ['dora@example.com'] })
  },
)

test.each(sample([3, 1], 2))('a channel is closed by an offline change of %i revisions', async (steps) => {
  needs('guarded revisions')
  const { couch, ann, database, own } = await startWithOwner()
  await own.put(channel(ann, 'photos'))
  const before = await inState(couch, database, 'photos', 'ready')
  await own.put({ ...before, state: 'new', data: { color: 'red' } })
  await eventually(async () =>
    expect(await inState(couch, database, 'photos', 'ready')).toMatchObject({ data: { color: 'red' } }),
  )
  await compactAway(couch.db(database), [before])
  await own.merge([offline(before, { state: 'closing', close: 'archive' }, steps)])
  await inState(couch, database, 'photos', 'closed')
})

thoroughTest('exceptions for devices are merged, and an offline revocation removes the device’s user', async () => {
  needs('guarded revisions')
  const { couch, controlDb, ann, phone, database, own } = await startWithOwner()
  const tablet = await addDevice(couch, controlDb, ann)
  const db = couch.db(database)
  await own.put(channel(ann, 'photos'))
  const subscription = await inState(couch, database, 'subscription:photos', 'active')
  const copy = await inState(couch, database, tablet.user, 'active')
  await own.put({ ...subscription, devices: { [phone.user]: 'paused' } })
  await db.put({ ...copy, name: 'tablet' })
  await compactAway(db, [subscription, copy])

  await own.merge([
    offline(subscription, { devices: { [tablet.user]: 'paused' } }),
    offline(copy, { state: 'revoked' }),
  ])
  await eventually(async () =>
    expect(await db.find('subscription:photos')).toMatchObject({
      ...{ state: 'active', devices: { [phone.user]: 'paused', [tablet.user]: 'paused' } },
    }),
  )
  await eventually(async () => expect(await couch.db('_users').find(`org.couchdb.user:${tablet.user}`)).toBeUndefined())
  expect(await couch.db('_users').find(`org.couchdb.user:${phone.user}`)).toBeDefined()
})

test('a removed member has no access while the channel waits in error for its owner', async () => {
  const { couch, control, anns, ready, record, bob, his } = await startWithMember()
  const error = { code: 'changed_twice', reason: 'others had data', at: new Date().toISOString() }
  const { docstate: _entry, ...doc } = ready
  await couch
    .db(anns)
    .put({ ...doc, _rev: (await couch.db(anns).get('photos'))._rev, state: 'error', members: [], error })
  await eventually(async () => {
    const { docstate: _told, ...known } = await control.get(record._id)
    await control.put({ ...known, state: 'changed' }) // as the handler of the request does before
  })
  await eventually(async () => expect(await rolesOf(couch, his)).toEqual([bob.role]))
  expect(await couch.db(anns).get('photos')).toMatchObject({ state: 'error', members: [] })
})

thoroughTest(
  'a revocation written before its device exists is overwritten by the device’s copy, which can then be revoked',
  async () => {
    needs('guarded revisions')
    const { couch, controlDb, ann, database, own } = await startWithOwner()
    const id = `device:${uniqueName('later')}`
    const _id = userNameOf(id)
    const forged = { _id, _rev: `1-${'f'.repeat(32)}`, type: 'device', device_id: 'device:none' }
    await own.merge([offline(forged, { state: 'revoked' })])
    await eventually(async () => expect((await couch.db(database).get(_id)).docstate).toHaveProperty('handled'))

    await addDevice(couch, controlDb, ann, id)
    const copy = await inState(couch, database, _id, 'active')
    expect(copy).toMatchObject({ device_id: id, user: _id, owner: ann.address })
    await own.put({ ...copy, state: 'revoked' })
    await eventually(async () => expect(await couch.db('_users').find(`org.couchdb.user:${_id}`)).toBeUndefined())
  },
)
