/** Protection for users against owners who make them members. */
import { expect, test } from 'vitest'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { ownerHashOf } from '../../sidecar/accounts/owner.ts'
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

type Fields = StoredDoc & { readonly docstate?: unknown; readonly error?: unknown }

/** Changes a document as a user does: without the sidecar's fields, and again after a conflict. */
const change = (db: Database, id: string, fields: object) =>
  eventually(async () => {
    const { docstate: _entry, error: _error, ...doc } = await db.get<Fields>(id)
    await db.put({ ...doc, ...fields })
  })

async function start() {
  const all = await startWithMember()
  const { his, bobs, record, ready } = all
  const [own, id] = [his.couch.db(bobs), `subscription:${record._id}`]
  const write = (state: string) => change(own, id, { state })
  const database = his.couch.db(String(ready.database))
  return { ...all, own, id, write, database }
}

test('a member who leaves has no access until the member rejoins, even if the owner adds the member again', async () => {
  const { couch, bob, his, bobs, phone, anns, record, ready, write, database, id } = await start()
  await eventually(() => database.info())
  await write('left')
  await inState(couch, bobs, record._id, 'removed')
  expect(await rolesOf(couch, his)).not.toContain(ready.database)
  await eventually(() => expect(database.info()).rejects.toThrow())
  await eventually(async () =>
    expect(await couch.db(anns).get('photos')).toMatchObject({ state: 'ready', left: [bob.address] }),
  )

  for (const members of [[], [bob.address]]) {
    await change(phone.couch.db(anns), 'photos', { state: 'new', members })
    await eventually(async () => expect(await couch.db(anns).get('photos')).toMatchObject({ state: 'ready', members }))
  }
  expect(await couch.db(bobs).get(record._id)).toMatchObject({ state: 'removed' })
  expect(await couch.db(bobs).get(id)).toMatchObject({ state: 'left' })

  await write('new')
  await inState(couch, bobs, id, 'active')
  await inState(couch, bobs, record._id, 'ready')
  await eventually(() => database.info())
  await eventually(async () => expect(await couch.db(anns).get('photos')).not.toHaveProperty('left'))
})

test('leaving an invitation declines it for good, and an owner cannot leave an own channel', async () => {
  const { couch, his, bobs, phone, anns, record, ready, write } = await start()
  expect(await couch.db(bobs).get(`subscription:${record._id}`)).toMatchObject({ state: 'invite' })
  await write('left')
  await eventually(async () => expect(await rolesOf(couch, his)).not.toContain(ready.database))

  await change(phone.couch.db(anns), 'subscription:photos', { state: 'left' })
  expect((await inState(couch, anns, 'subscription:photos', 'error')).error).toMatchObject({ code: 'own_channel' })
  expect((await couch.db(record.database as string).info()).db_name).toBe(record.database)
})

test('an invitation from a known owner is shown beside those of a hundred strangers', async () => {
  const controlDb = createControlDb()
  const { couch, control } = await startWorker(controlDb)
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  const records = Array.from({ length: 100 }, (_, at) => {
    const [database, owner] = [`channel-${String(at).padStart(32, '0')}`, `stranger${at}@example.com`]
    const fields = {
      type: 'channel_record',
      state: 'ready',
      name: `c${at}`,
      owner,
      owner_role: 'owner-none',
      members: [bob.address],
    }
    return {
      _id: `channel:${at}`,
      ...fields,
      former: [],
      life: 1,
      database,
      role: database,
      user_database: 'userdb-none',
      document: 'c',
    }
  })
  await control.bulk(records.map((record) => JSON.stringify(record)))
  const accountId = `account:${ownerHashOf(normaliseAddress(bob.address))}`
  await change(control, accountId, { state: 'changed', channels: records.map(({ _id }) => _id) })
  const invitations = async () =>
    (await couch.db(bobs).withPrefix('subscription:'))
      .filter(({ state }) => state === 'invite')
      .map(({ channel_id }) => String(channel_id))
  await eventually(async () => {
    expect(await invitations()).toHaveLength(50)
    expect(await invitations()).toContain('channel:99')
  })
  const roles = (await rolesOf(couch, his)) as string[]
  expect(roles).toHaveLength(51)

  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  await inState(couch, anns, 'photos', 'ready')
  const record = (await control.withPrefix('channel:')).find(({ owner }) => owner === ann.address)!
  await inState(couch, bobs, record._id, 'ready')
  await eventually(async () => {
    expect(await invitations()).toHaveLength(50)
    expect(await invitations()).toContain(record._id)
  })
})
