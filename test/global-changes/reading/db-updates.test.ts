import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { NOW } from '../../../sidecar/global-changes/reading/history.ts'
import { createTestCouch, deleteDb, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { freshEventDatabase, updatesOf } from './event-database.ts'
import { hold } from './faults.ts'
import { createFeed } from './rig.ts'

const isLive = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && query.get('feed') === 'continuous'
const isPage = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && !query.has('feed')

async function setUp() {
  const db = await freshEventDatabase()
  const proxy = await startFaultyProxy()
  return { db, proxy, ...createFeed(db.name, createTestCouch({ url: proxy.url })) }
}

/** Deletes a database, and makes it again, at once or in a later second: two lives within a second look alike. */
async function remake(db: Database, later = true) {
  await deleteDb(db.name)
  const second = () => Math.floor(Date.now() / 1000)
  const deletedIn = second()
  if (later) await eventually(() => expect(second()).toBeGreaterThan(deletedIn))
  await db.create()
}

test('the feed may break off, and its server go away: no reader loses a row', async () => {
  const { db, proxy, run, collect } = await setUp()
  run()
  const readers = [collect(), collect({ since: NOW })]
  for (const { reading } of readers) await eventually(() => expect(reading.isBehind).toBe(false))
  const written: string[] = []
  for (let round = 0; round < 4; round++) {
    const ids = updatesOf(20, round * 20)
    written.push(...ids)
    await db.tell(...ids.slice(0, 10))
    if (round % 2 === 0) proxy.dropConnections()
    else await proxy.down()
    await db.tell(...ids.slice(10))
    if (round % 2 === 1) await proxy.up()
    for (const { updates } of readers) {
      await eventually(() => expect([...new Set(updates.map(({ id }) => id))].sort()).toEqual([...written].sort()))
    }
  }
})

test('a reader that is behind when the server goes away waits for it', async () => {
  const { db, proxy, run, open, signal } = await setUp()
  run()
  await db.tell(...updatesOf(3))
  const reader = open()
  expect(await reader.next(1, signal)).toHaveLength(1)
  await proxy.down()
  const next = reader.next(10, signal)
  await eventually(() => proxy.up())
  expect(await next).toHaveLength(2)
})

test.each([
  ['at once', false],
  ['later', true],
])('a database that is deleted, and made again %s, is read on from its start', async (_, later) => {
  needs('database identity')
  const { db, proxy, run, collect } = await setUp()
  await db.tell(...updatesOf(10))
  run()
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  const reader = collect()
  await eventually(() => expect(reader.updates).toHaveLength(10))
  await remake(db, later)
  await eventually(() => db.tell('updated:db1', 'created:new')) // CouchDB may say 404 for a moment
  await eventually(() =>
    expect(
      reader.updates
        .slice(10)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(['created:new', 'updated:db1']),
  )
})

test('a database that is made again between two connections of the feed is read from its start too', async () => {
  needs('database identity')
  const { db, proxy, run, collect } = await setUp()
  run()
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  await db.tell('updated:db0')
  const reader = collect()
  await eventually(() => expect(reader.updates).toHaveLength(1)) // by a page
  const held = hold('request')
  proxy.next(held.fault, ({ path }) => path === `/${db.name}`)
  await db.tell(...updatesOf(999, 1)) // with these a connection has had its thousand rows
  await eventually(() => expect([held.isThere(), reader.updates.length]).toEqual([true, 1000]))
  await remake(db)
  await eventually(() => db.tell('updated:db0')) // CouchDB may say 404 for a moment
  held.release()
  await eventually(() => expect(reader.updates.slice(1000).map(({ id }) => id)).toEqual(['updated:db0']))
})

test('the feed waits for a database that is not there yet', async () => {
  const db = await freshEventDatabase()
  await deleteDb(db.name)
  const { events, run, open, collect, signal } = createFeed(db.name)
  run()
  await expect(open().next(10, signal)).rejects.toMatchObject({ code: 'not_found' })
  const seen: unknown[] = []
  for (const name of ['database:created', 'database:deleted'] as const) {
    events.subscribe(name, ({ event, channel }) => seen.push([channel, event]))
  }
  await db.create()
  await db.tell('created:acme/orders', 'deleted:users')
  await eventually(() => expect(seen).toHaveLength(2))
  expect(seen).toEqual(
    expect.arrayContaining([
      ['database:created', { database: 'acme/orders', account: 'acme' }],
      ['database:deleted', { database: 'users', account: '_admin' }],
    ]),
  )
  const reader = collect({ since: NOW })
  await eventually(() => expect(reader.reading.isBehind).toBe(false))
  await db.tell('updated:users')
  await eventually(() => expect(reader.ids()).toEqual(['updated:users']))
})

test('what was there before it began is nobody’s event', async () => {
  const { db, events, run } = await setUp()
  await db.tell('updated:old')
  const seen: string[] = []
  events.subscribe('database:updated', ({ event }) => seen.push(event.database))
  run()
  await eventually(async () => {
    await db.tell('updated:new')
    expect(seen.length).toBeGreaterThan(0)
  })
  expect(new Set(seen)).toEqual(new Set(['new']))
})

test('a page that is asked for is given up when its reader leaves', async () => {
  const { proxy, open } = await setUp()
  let gone = false
  proxy.next((exchange) => void exchange.wait(60_000).then(() => (gone = true)), isPage)
  const leaving = new AbortController()
  const next = open().next(10, leaving.signal)
  await eventually(() => expect(proxy.requests.filter(isPage)).toHaveLength(1))
  leaving.abort(new Error('left'))
  await expect(next).rejects.toThrow('left')
  await eventually(() => expect(gone).toBe(true))
})

test('it is started once', async () => {
  const { feed, run, signal } = await setUp()
  run()
  await expect(feed.run(signal)).rejects.toThrow('started twice')
})
