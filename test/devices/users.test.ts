/** The users of devices in `_users`. */
import { expect, onTestFinished, test } from 'vitest'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { createDeviceUsers } from '../../sidecar/devices/users.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'

test('revoking a user with conflicts in `_users` removes every branch', async () => {
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
  await users.merge(written) // with two branches CouchDB refuses the login, with one of them it accepts it
  const url = new URL(couchUrl())
  ;[url.username, url.password] = [name, 'secret']
  const device = createTestCouch({ url: url.href })

  await createDeviceUsers(users).revoke(name, {})
  expect(await users.find(_id)).toBeUndefined()
  expect((await users.leaves(_id)).filter(({ _deleted }) => !_deleted)).toEqual([])
  await expect(device.request({ path: '_session' })).rejects.toMatchObject({ code: 'unauthorized' })
})

test('revoking a user removes it, even if it names another device', async () => {
  const users = createTestCouch().db('_users')
  const name = userNameOf(uniqueName('device'))
  const _id = `org.couchdb.user:${name}`
  await users.put({ _id, type: 'user', name, roles: [], device_id: 'another', password: 'secret' })
  await createDeviceUsers(users).revoke(name, {})
  expect(await users.find(_id)).toBeUndefined()
})
