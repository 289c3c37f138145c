/** The users of devices in `_users`. */
import { expect, onTestFinished, test } from 'vitest'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { createDeviceUsers } from '../../sidecar/devices/users.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'

test('a user that a cluster has written twice is gone when it is revoked, with every branch', async () => {
  const users = createTestCouch().db('_users')
  const deviceId = uniqueName('device')
  const name = userNameOf(deviceId)
  const _id = `org.couchdb.user:${name}`
  const _rev = await users.put({ ...{ _id, type: 'user', name, roles: [], device_id: deviceId }, password: 'secret' })
  onTestFinished(async () => {
    const left = await users.find(_id)
    if (left) await users.remove(_id, left._rev)
  })
  const there = await users.get(_id)
  const written = ['1', '2'].map((digit) => {
    const ids = [digit.repeat(32), _rev.split('-')[1]!]
    return { ...there, _rev: `2-${ids[0]}`, _revisions: { start: 2, ids } }
  })
  await users.merge(written) // while both are there CouchDB lets nobody log in, with one of them it does
  const url = new URL(couchUrl())
  ;[url.username, url.password] = [name, 'secret']
  const device = createTestCouch({ url: url.href })

  await createDeviceUsers(users).revoke(name, {})
  expect(await users.find(_id)).toBeUndefined()
  expect((await users.leaves(_id)).filter(({ _deleted }) => !_deleted)).toEqual([])
  await expect(device.request({ path: '_session' })).rejects.toMatchObject({ code: 'unauthorized' })
})

test('a user is gone when it is revoked, whichever device it has written into its own document', async () => {
  const users = createTestCouch().db('_users')
  const name = userNameOf(uniqueName('device'))
  const _id = `org.couchdb.user:${name}`
  await users.put({ _id, type: 'user', name, roles: [], device_id: 'another', password: 'secret' })
  await createDeviceUsers(users).revoke(name, {})
  expect(await users.find(_id)).toBeUndefined()
})
