/** The feed of all databases' changes, and settings that change while the sidecar runs. */
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { couchUrl, createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startWatching } from './registration.ts'

async function start() {
  const { control, sidecar } = await startWatching()
  const events = createTestCouch().db(control.eventsName)
  const received = (id: string) => eventually(async () => expect(await events.find(id)).toBeDefined())
  await received(`created:${control.name}`)
  return { control, sidecar, events, received }
}

test('database events are written for all databases, including those of the sidecar', async () => {
  const { control, received } = await start()
  const db = await freshDb('orders')
  await received(`created:${db.name}`)
  await db.put({ _id: 'a' })
  await received(`updated:${db.name}`)
  await control.admin.put({ _id: 'a', type: 'note' })
  await received(`updated:${control.name}`)
})

test('the global feed, the event channels and the metrics report a database change', async () => {
  const { sidecar, received } = await start()
  const { username, password } = new URL(couchUrl())
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const read = async (path: string) => {
    const { body } = await fetch(`${sidecar.url}${path}`, { headers, signal: leaving.signal })
    const reader = { text: '' }
    const follow = async () => {
      for await (const chunk of body as AsyncIterable<Uint8Array>) reader.text += Buffer.from(chunk).toString()
    }
    follow().catch(() => undefined)
    return reader
  }
  const feed = await read('/_db_updates?feed=continuous&since=now')
  const channel = await read('/_events/database:created')
  const db = await freshDb('orders')
  await received(`created:${db.name}`)
  const event = `"database":"${db.name}","account":"_admin"`
  await eventually(() => expect(feed.text).toContain(`{"db_name":"${db.name}","type":"created","seq":`))
  await eventually(() => expect(channel.text).toContain(event))
  const metrics = await (await fetch(`${sidecar.url}/metrics`, { headers })).text()
  expect(metrics).toMatch(/^couchdb_sidecar_db_updates_readers 1$/m)
  expect(metrics).toMatch(/^couchdb_sidecar_global_changes_db_writes_total [1-9]/m)
  expect((await fetch(`${sidecar.url}/_db_updates`)).status).toBe(401)
})

test('a settings document switches database events off and on, and an invalid one is refused', async () => {
  const { control, events, received } = await start()
  const _id = 'config:global_changes'
  await expect(control.admin.put({ _id, max_event_delay: -1 })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(control.admin.put({ _id, update: false })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(control.member.put({ _id, update_db: false })).rejects.toMatchObject({ code: 'forbidden' })

  const other = await start()
  const rev = await control.admin.put({ _id, update_db: false })
  const databases: Database[] = []
  const make = async () => {
    const db = await freshDb('orders')
    await other.received(`created:${db.name}`)
    databases.unshift(db)
    return events.find(`created:${db.name}`)
  }
  await eventually(async () => expect(await make()).toBeUndefined())
  databases.length = 0
  for (let i = 0; i < 5; i++) expect(await make()).toBeUndefined()
  await control.admin.remove(_id, rev)
  for (const db of databases) await received(`created:${db.name}`)
})
