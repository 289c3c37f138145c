/** A device and its user stay consistent, with any number of workers. */
import { expect, test } from 'vitest'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { createLatch, docstateIn } from '../docstate/rig.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { cutAfterUpstream, pass, startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { credentials, newDevice, startRegistrationRig, userIdOf } from './rig.ts'

/** A worker that is about to write the user of a confirmed device, and waits for the latch. */
async function holdGrant(then: Fault = pass) {
  const db = await freshDb('account')
  const proxy = await startFaultyProxy()
  const [reached, latch] = [createLatch(), createLatch()]
  const hold: Fault = async (exchange) => {
    reached.open()
    await latch.opened
    await then(exchange)
  }
  proxy.next(hold, ({ method, path }) => method === 'PUT' && path.startsWith('/_users/'))
  const slow = await startRegistrationRig(db, { url: proxy.url, worker: 'slow' })
  const device = newDevice({ state: 'confirmed', credentials })
  await db.put(device)
  await reached.opened
  const users = createTestCouch().db('_users')
  const granted = () => proxy.requests.filter(({ method, path }) => method !== 'GET' && path.startsWith('/_users/'))
  return { db, device, slow, granted, user: () => users.find(userIdOf(device._id)), open: () => latch.open() }
}

const change = async (db: Awaited<ReturnType<typeof freshDb>>, id: string, fields: object) =>
  db.put({ ...(await db.get<Doc>(id)), ...fields })

test.each([
  ['is written', pass],
  ['is written, and the answer is lost', cutAfterUpstream],
])('a device revoked while a worker writes its user has no user in the end: the user %s', async (_, then) => {
  const { db, device, slow, user, granted, open } = await holdGrant(then)
  await change(db, device._id, { state: 'revoked' })
  const other = await startRegistrationRig(db, { worker: 'other' })
  await eventually(async () => expect(docstateIn(await db.get(device._id))).toHaveProperty('handled'))
  open()
  await eventually(() => expect(granted().map(({ method }) => method)).toEqual(['PUT', 'DELETE']))
  await Promise.all([slow.stop(), other.stop()])
  expect(await user()).toBeUndefined()
  expect(await db.get(device._id)).toMatchObject({ state: 'revoked' })
})

test('a device deleted while a worker writes its user has no user in the end', async () => {
  const { db, device, slow, user, granted, open } = await holdGrant()
  await db.remove(device._id, (await db.get(device._id))._rev)
  open()
  await eventually(() => expect(granted().map(({ method }) => method)).toEqual(['PUT', 'DELETE']))
  await slow.stop()
  expect(await user()).toBeUndefined()
})

test('a device that another worker activates meanwhile keeps its user', async () => {
  const { db, device, slow, user, open } = await holdGrant()
  const other = await startRegistrationRig(db, { worker: 'other' })
  await eventually(async () => expect(await db.get(device._id)).toMatchObject({ state: 'active' }))
  open()
  await slow.stop()
  await other.stop()
  expect(await user()).toMatchObject({ device_id: device._id })
  expect(await db.get(device._id)).toMatchObject({ state: 'active' })
})
