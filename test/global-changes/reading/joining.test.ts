import { expect, test } from 'vitest'
import { NOW } from '../../../sidecar/global-changes/reading/history.ts'
import type { Update } from '../../../sidecar/global-changes/reading/update.ts'
import { createTestCouch, deleteDb, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type Fault, type SeenRequest } from '../../support/faulty-proxy.ts'
import { readWhileWriting } from './crowd.ts'
import { freshEventDatabase, updatesOf } from './event-database.ts'
import { createFeed } from './rig.ts'

const isLive = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && query.get('feed') === 'continuous'
const isPage = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && !query.has('feed')
const isHubsPlace = (request: SeenRequest) => isPage(request) && request.query.get('limit') === '0'

async function setUp() {
  const db = await freshEventDatabase()
  const proxy = await startFaultyProxy()
  return { db, proxy, ...createFeed(db.name, createTestCouch({ url: proxy.url })) }
}

test('readers that begin anywhere while rows are written have the last of each, and none twice', async () => {
  const { db, ...rig } = await setUp()
  expect(await readWhileWriting(db, rig)).toBe(0)
  expect(rig.feed.counts().slow).toBe(0)
})

test('what is written between the last page of a reader and the first row of the feed is not lost', async () => {
  const { db, proxy, run, open, signal } = await setUp()
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const hold: Fault = async (exchange) => {
    await held
    await exchange.send(await exchange.forward())
    exchange.end()
  }
  proxy.next(hold, isHubsPlace)
  run()
  const reader = open()
  expect(await reader.next(10, signal)).toEqual([])
  expect(reader.isBehind).toBe(false)
  await db.tell('updated:a')
  const next = reader.next(10, signal)
  release()
  expect((await next).map(({ id }) => id)).toEqual(['updated:a'])
})

test('what the hub brings while the last page is on its way is not lost', async () => {
  const { db, proxy, feed, run, open, signal } = await setUp()
  run()
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  let isAnswered = false
  proxy.next(async (exchange) => {
    const answer = await exchange.forward()
    isAnswered = true
    await held
    await exchange.send(answer)
    exchange.end()
  }, isPage)
  const reader = open()
  const first = reader.next(10, signal)
  await eventually(() => expect(isAnswered).toBe(true))
  await db.tell('updated:a')
  await eventually(() => expect(feed.counts().rows).toBe(1))
  release()
  expect(await first).toEqual([])
  expect((await reader.next(10, signal)).map(({ id }) => id)).toEqual(['updated:a'])
})

test('two hundred readers cost one feed and a page each', async () => {
  const { db, proxy, feed, run, collect } = await setUp()
  run()
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  const readers = Array.from({ length: 200 }, () => collect({ since: NOW }))
  for (const { reading } of readers) await eventually(() => expect(reading.isBehind).toBe(false))
  for (let round = 0; round < 3; round++) await db.tell(...updatesOf(2, round * 2))
  for (const { ids } of readers) await eventually(() => expect(ids()).toEqual(updatesOf(6)))
  expect(proxy.requests.filter(isLive)).toHaveLength(1)
  expect(proxy.requests.filter((request) => isPage(request) && !isHubsPlace(request))).toHaveLength(200)
  expect(feed.counts()).toEqual({ readers: 200, rows: 6, pages: 200, slow: 0 })
  for (const { leave } of readers) leave()
  await eventually(() => expect(feed.counts().readers).toBe(0))
})

test('a reader that takes nothing is kept the last row of each, and reads all again when that is too much', async () => {
  const { db, feed, run, open, collect, signal } = await setUp()
  run()
  const quick = collect({ since: NOW })
  const slow = open({ since: NOW })
  expect(await slow.next(10, signal)).toEqual([])
  await eventually(() => expect(quick.reading.isBehind).toBe(false))
  for (let round = 0; round < 3; round++) await db.tell('updated:a', 'updated:b')
  const third = ['updated:a 3', 'updated:b 3']
  const namesOf = (updates: readonly Update[]) => updates.map(({ id, rev }) => `${id} ${parseInt(rev)}`).sort()
  await eventually(() => expect(namesOf(quick.updates)).toEqual(expect.arrayContaining(third)))
  expect(namesOf(await slow.next(10, signal))).toEqual(third)
  const { pages } = feed.counts()
  const ids = updatesOf(1300)
  await db.tell(...ids)
  await eventually(() => expect(feed.counts().slow).toBe(1))
  expect(slow.isBehind).toBe(true)
  const taken = []
  do taken.push(...(await slow.next(200, signal)))
  while (slow.isBehind)
  expect(taken.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(feed.counts().pages - pages, 'each page once').toBe(Math.ceil(1301 / 200))
})

test('a reader that takes one row at a time comes back to the right place after each', async () => {
  const { db, proxy, run, open, signal } = await setUp()
  await db.tell(...updatesOf(5))
  run()
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  const first = open()
  const ids: string[] = []
  for (let round = 0; round < 5; round++) ids.push((await first.next(1, signal))[0]!.id)
  expect(ids.sort()).toEqual(updatesOf(5))
  expect(await first.next(1, signal)).toEqual([])
  await db.tell('updated:a', 'updated:b', 'updated:c')
  const one = await first.next(1, signal)
  const rest = open({ since: first.place })
  const others = await rest.next(10, signal)
  expect([...one, ...others].map(({ id }) => id).sort()).toEqual(['updated:a', 'updated:b', 'updated:c'])
})

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
  await deleteDb(db.name)
  const second = () => Math.floor(Date.now() / 1000)
  const deletedIn = second()
  if (later) await eventually(() => expect(second(), 'two lives within a second look alike').toBeGreaterThan(deletedIn))
  await db.create()
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
