import { expect, test } from 'vitest'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { createAgain, deleteDb, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { addDevice, channel, createControlDb, inState, newPerson, rolesOf, startWithOwner, startWorker } from './rig.ts'

test('a new channel appears on all devices of its owner', async () => {
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const ann = newPerson('ann')
  const phone = await addDevice(couch, controlDb, ann)
  const database = await phone.database()
  await phone.couch.db(database).put(channel(ann, 'photos'))
  const ready = await inState(phone.couch, database, 'photos', 'ready')
  const name = String(ready.database)
  expect(ready).toMatchObject({ name: 'photos', owner: ann.address, owner_role: ann.role, members: [] })
  expect(ready.syncpoint).toBe(`${couch.url}/${name}`)
  expect(ready).not.toHaveProperty('docstate')
  const subscription = await inState(phone.couch, database, 'subscription:photos', 'active')
  expect(subscription).toMatchObject({ type: 'subscription', channel_id: 'photos' })
  const described = await eventually(() => phone.couch.db(name).get('description'))
  expect(described).toMatchObject({ name: 'photos', owner: ann.address })

  const tablet = await addDevice(couch, controlDb, ann)
  await eventually(async () => expect(await rolesOf(couch, tablet)).toContain(name))
  await eventually(() => tablet.couch.db(name).put({ _id: 'note', text: 'from the tablet' }))
  expect(await phone.couch.db(name).get('note')).toMatchObject({ text: 'from the tablet' })
  await eventually(async () => {
    const devices = await tablet.couch.db(database).withPrefix('device-')
    expect(devices.map(({ _id, state }) => [_id, state]).sort()).toEqual(
      [phone, tablet].map(({ user }) => [user, 'active']).sort(),
    )
  })
})

test('databases of users and channels have the configured number of shards', async () => {
  needs('node endpoints')
  const { couch, control, ann, database, own } = await startWithOwner({ config: { shards: 3 } })
  await own.put(channel(ann, 'photos'))
  const { database: name } = await inState(couch, database, 'photos', 'ready')
  for (const db of [database, String(name)]) expect((await couch.db(db).info()).cluster).toMatchObject({ q: 3 })
  expect((await control.info()).cluster).not.toMatchObject({ q: 3 })
})

test("only the devices of a user can access the user's databases, and no device is a database admin", async () => {
  needs('guarded find')
  const controlDb = createControlDb()
  const { couch } = await startWorker(controlDb)
  const [ann, eve] = [newPerson('ann'), newPerson('eve')]
  const phone = await addDevice(couch, controlDb, ann)
  const stranger = await addDevice(couch, controlDb, eve)
  const database = await phone.database()
  await stranger.database()
  await phone.couch.db(database).put(channel(ann, 'photos'))
  const { database: name } = await inState(phone.couch, database, 'photos', 'ready')
  for (const db of [database, String(name), controlDb]) {
    for (const path of [
      '',
      '_all_docs',
      '_changes',
      '_security',
      '_find',
      'photos',
      '_design/docstate',
      '_local_docs',
    ]) {
      const method = path === '_find' ? 'POST' : 'GET'
      const requested = stranger.couch.request({
        method,
        db,
        path,
        ...(method === 'POST' && { body: { selector: {} } }),
      })
      await expect(requested, `${method} /${db}/${path}`).rejects.toSatisfy((thrown) =>
        isCouchError(thrown, 'forbidden'),
      )
    }
    await expect(stranger.couch.db(db).put({ _id: 'x' })).rejects.toSatisfy((thrown) =>
      isCouchError(thrown, 'forbidden'),
    )
  }
  for (const db of [database, String(name)]) {
    const admins = [
      () => phone.couch.db(db).put({ _id: '_design/mine', views: {} }),
      () => phone.couch.db(db).setSecurity({ admins: { names: [], roles: [] }, members: { names: [], roles: [] } }),
    ]
    for (const attempt of admins) await expect(attempt()).rejects.toThrow()
  }
  await expect(phone.couch.db(String(name)).put({ _id: 'description', name: 'mine' })).rejects.toThrow()
})

test('each database, also an archived one, admits one role, and only server admins administer it', async () => {
  const { couch, ann, own, database } = await startWithOwner()
  const securityFor = (role: string) => ({
    admins: { names: [], roles: ['_admin'] },
    members: { names: [], roles: [role] },
  })
  expect(await couch.db(database).security()).toEqual(securityFor(ann.role))

  await own.put(channel(ann, 'photos'))
  const ready = await inState(couch, database, 'photos', 'ready')
  const photos = couch.db(String(ready.database))
  expect(await photos.security()).toEqual(securityFor(photos.name))
  await own.put({ ...ready, state: 'closing', close: 'archive' })
  await inState(couch, database, 'photos', 'closed')
  expect(await photos.security()).toEqual(securityFor('_admin'))
})

test('a device that another device revokes loses access at once, and the other device keeps it', async () => {
  const controlDb = createControlDb()
  const { couch, control } = await startWorker(controlDb)
  const ann = newPerson('ann')
  const phone = await addDevice(couch, controlDb, ann)
  const tablet = await addDevice(couch, controlDb, ann)
  const database = await phone.database()
  const copy = await inState(phone.couch, database, tablet.user, 'active')
  await phone.couch.db(database).put({ ...copy, state: 'revoked' })
  await inState(couch, controlDb, tablet.id, 'revoked')
  await eventually(() => expect(tablet.couch.db(database).info()).rejects.toThrow())
  expect(await couch.db('_users').find(`org.couchdb.user:${tablet.user}`)).toBeUndefined()
  expect(await phone.couch.db(database).get(phone.user)).toMatchObject({ state: 'active' })
  await eventually(async () => {
    const [account] = await control.withPrefix('account:')
    expect(account).toMatchObject({ state: 'ready', devices: [phone.id] })
  })
})

test('a user’s database recreated without its security object gets it and all its documents again', async () => {
  const { couch, control, controlDb, ann, database: name, own } = await startWithOwner()
  await own.put(channel(ann, 'photos', { data: { color: 'red' } }))
  const ready = await inState(couch, name, 'photos', 'ready')
  await inState(couch, name, 'subscription:photos', 'active')

  await deleteDb(name)
  await createAgain(couch.db(name)) // as a worker leaves it that dies before it sets the security object
  const account = (await control.withPrefix('account:'))[0]!
  await eventually(async () => control.put({ ...(await control.get(account._id)), state: 'changed' }))
  await inState(couch, name, 'subscription:photos', 'active')
  const { _rev, docstate: _docstate, ...known } = ready
  expect(await own.get('photos')).toMatchObject(known)
  const stranger = await addDevice(couch, controlDb, newPerson('eve'))
  await expect(stranger.couch.db(name).info()).rejects.toThrow(/not allowed|not authorized/)
})

test('a device that registers late, or again, gets the same database', async () => {
  const controlDb = createControlDb()
  const { couch, control } = await startWorker(controlDb)
  const ann = newPerson('ann')
  const [phone, tablet] = await Promise.all([addDevice(couch, controlDb, ann), addDevice(couch, controlDb, ann)])
  expect(await phone.database()).toBe(await tablet.database())
  expect(await control.withPrefix('account:')).toHaveLength(1)
  expect(await control.withPrefix('database:')).toHaveLength(1)
})
