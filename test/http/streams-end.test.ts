/** Endless answers continue only while their reader has permission. */
import { expect, test } from 'vitest'
import { startRegistration } from '../acceptance/registration.ts'
import { createUser } from '../ddocs/users.ts'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { basic, createServerAdmin } from '../support/server-admin.ts'
import { openFeed } from '../global-changes/serving/db-updates-rig.ts'

const FEEDS = [
  '/_events/mail:sent',
  ...['longpoll', 'continuous', 'eventsource'].map((feed) => `/_db_updates?feed=${feed}&since=now&heartbeat=60000`),
]

test('streams of a deleted admin end within a lease, and others continue, even while CouchDB is unreachable', async () => {
  needs('node endpoints')
  const proxy = await startFaultyProxy()
  const { sidecar, control } = await startRegistration({ COUCHDB_URL: proxy.url, SIDECAR_LEASE: '3s' })
  await createTestCouch().db(control.eventsName).create()
  const [admin, other] = [await createServerAdmin(), await createServerAdmin()]
  const openAll = ({ authorization }: { authorization: string }) =>
    Promise.all(FEEDS.map((path) => openFeed(`${sidecar.url}${path}`, { authorization })))
  const [ending, staying] = [await openAll(admin), await openAll(other)]
  for (const { response } of [...ending, ...staying]) expect(response.status).toBe(200)
  await proxy.down()
  await new Promise((resolve) => setTimeout(resolve, 4_000)) // more than a lease
  expect(ending.map(({ ended }) => ended)).toEqual(FEEDS.map(() => false))
  await proxy.up()
  await admin.remove()
  await eventually(() => expect(ending.map(({ ended }) => ended)).toEqual(FEEDS.map(() => true)))
  expect(staying.map(({ ended }) => ended)).toEqual(FEEDS.map(() => false))
})

test('streams of a user end after a deletion or a password change', async () => {
  const { sidecar, control } = await startRegistration({ SIDECAR_LEASE: '3s' })
  await createTestCouch().db(control.eventsName).create()
  const users = createTestCouch().db('_users')
  const changed = await createUser()
  const feed = (name: string, password: string) =>
    openFeed(`${sidecar.url}/_db_updates?feed=continuous&since=now&heartbeat=60000`, {
      authorization: basic(name, password),
    })
  const reader = await feed(changed.name, changed.password)
  expect(reader.response.status).toBe(200)
  await eventually(async () => {
    const user = await users.get(`org.couchdb.user:${changed.name}`)
    await users.put({ ...user, password: 'another' })
  })
  await eventually(() => expect(reader.ended).toBe(true))
})
