import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { NOW } from '../../../sidecar/global-changes/reading/history.ts'
import { createAgain, deleteDb, needs, nextSecond } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { freshEventDatabase, updatesOf } from './event-database.ts'
import { hold } from './faults.ts'
import { createFeed, createProxiedFeed, isPage } from './rig.ts'

/** Deletes a database and creates it again, at once or in a later second. */
async function remake(db: Database, later = true) {
  await deleteDb(db.name)
  if (later) await nextSecond()
  await createAgain(db)
}

test('no reader loses a row when the feed breaks or the server goes down', async () => {
  const { db, proxy, run, collect } = await createProxiedFeed()
  run()
  const readers = [collect(), collect({ since: NOW })]
  for (const { reading } of readers) await eventually(() => expect(reading.isBehind).toBe(false))
  const written: string[] = []
  for (let round = 0; round < 4; round++) {
    const ids = updatesOf(20, round * 20)
    written.push(...ids)
    await db.report(...ids.slice(0, 10))
    if (round % 2 === 0) proxy.dropConnections()
    else await proxy.down()
    await db.report(...ids.slice(10))
    if (round % 2 === 1) await proxy.up()
    for (const { updates } of readers) {
      await eventually(() => expect([...new Set(updates.map(({ id }) => id))].sort()).toEqual([...written].sort()))
    }
  }
})

test('a reader with a backlog waits for a server that is down', async () => {
  const { db, proxy, run, open, signal } = await createProxiedFeed()
  run()
  await db.report(...updatesOf(3))
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
])('readers read a database from its start if it is deleted and created again %s', async (_, later) => {
  needs('database identity')
  const { db, collect, connect } = await createProxiedFeed()
  await db.report(...updatesOf(10))
  await connect()
  const reader = collect()
  await eventually(() => expect(reader.updates).toHaveLength(10))
  await remake(db, later)
  await eventually(() => db.report('updated:db1', 'created:new')) // CouchDB may answer 404 for a moment
  await eventually(() =>
    expect(
      reader.updates
        .slice(10)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(['created:new', 'updated:db1']),
  )
})

test('readers read a database from its start if it is created again between two feed connections', async () => {
  needs('database identity')
  const { db, proxy, collect, connect } = await createProxiedFeed()
  await connect()
  await db.report('updated:db0')
  const reader = collect()
  await eventually(() => expect(reader.updates).toHaveLength(1)) // from a page
  const held = hold('request')
  proxy.next(held.fault, ({ path }) => path === `/${db.name}`)
  await db.report(...updatesOf(999, 1)) // with these rows a connection reaches its limit of 1,000
  await eventually(() => expect([held.isThere(), reader.updates.length]).toEqual([true, 1000]))
  await remake(db)
  await eventually(() => db.report('updated:db0')) // CouchDB may answer 404 for a moment
  held.release()
  await eventually(() => expect(reader.updates.slice(1000).map(({ id }) => id)).toEqual(['updated:db0']))
})

test('a page of a former database does not set the sequence of the new one', async () => {
  needs('database identity')
  const { db, proxy, feed, connect, collectDuringPage } = await createProxiedFeed()
  await db.report(...updatesOf(10))
  await connect()
  const { reader, release } = await collectDuringPage()
  await remake(db)
  await eventually(async () => {
    await db.report('created:new') // CouchDB may answer 404 for a moment
    expect(feed.counts().rows).toBeGreaterThan(0) // the hub follows the new database
  })
  const before = proxy.requests.filter(isPage).length
  release()
  await eventually(() => expect(reader.ids()).toContain('created:new'))
  expect(proxy.requests.filter(isPage)[before]!.query.get('since')).toBe('0')
  expect(new Set(reader.ids()).size, 'ten of the former database').toBe(11)
})

test('the feed waits until its database exists', async () => {
  const db = await freshEventDatabase()
  await deleteDb(db.name)
  const { events, run, open, collect, signal } = createFeed(db.name)
  run()
  await expect(open().next(10, signal)).rejects.toMatchObject({ code: 'not_found' })
  const seen: unknown[] = []
  for (const name of ['database:created', 'database:deleted'] as const) {
    events.subscribe(name, ({ event, channel }) => seen.push([channel, event]))
  }
  await createAgain(db)
  await db.report('created:acme/orders', 'deleted:users')
  await eventually(() => expect(seen).toHaveLength(2))
  expect(seen).toEqual(
    expect.arrayContaining([
      ['database:created', { database: 'acme/orders', account: 'acme' }],
      ['database:deleted', { database: 'users', account: '_admin' }],
    ]),
  )
  const reader = collect({ since: NOW })
  await eventually(() => expect(reader.reading.isBehind).toBe(false))
  await db.report('updated:users')
  await eventually(() => expect(reader.ids()).toEqual(['updated:users']))
})

test('rows from before the start cause no event', async () => {
  const { db, events, run } = await createProxiedFeed()
  await db.report('updated:old')
  const seen: string[] = []
  events.subscribe('database:updated', ({ event }) => seen.push(event.database))
  run()
  await eventually(async () => {
    await db.report('updated:new')
    expect(seen.length).toBeGreaterThan(0)
  })
  expect(new Set(seen)).toEqual(new Set(['new']))
})

test('a reader that closes cancels its pending page', async () => {
  const { proxy, open } = await createProxiedFeed()
  let gone = false
  proxy.next((exchange) => void exchange.wait(60_000).then(() => (gone = true)), isPage)
  const leaving = new AbortController()
  const next = open().next(10, leaving.signal)
  await eventually(() => expect(proxy.requests.filter(isPage)).toHaveLength(1))
  leaving.abort(new Error('left'))
  await expect(next).rejects.toThrow('left')
  await eventually(() => expect(gone).toBe(true))
})

test('the feed can be started only once', async () => {
  const { feed, run, signal } = await createProxiedFeed()
  run()
  await expect(feed.run(signal)).rejects.toThrow('started twice')
})
