import { expect, test } from 'vitest'
import { NOW } from '../../../sidecar/global-changes/reading/history.ts'
import type { Update } from '../../../sidecar/global-changes/reading/update.ts'
import { eventually } from '../../support/eventually.ts'
import type { SeenRequest } from '../../support/faulty-proxy.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { readWhileWriting } from './crowd.ts'
import { updatesOf } from './event-database.ts'
import { changeJson, hold } from './faults.ts'
import { createProxiedFeed, isLive, isPage } from './rig.ts'

const isHubsPlace = (request: SeenRequest) => isPage(request) && request.query.get('limit') === '0'

test('readers from any sequence get the last row of each database, without duplicates, while rows are written', async () => {
  const { db, ...rig } = await createProxiedFeed()
  expect(await readWhileWriting(db, rig)).toBe(0)
  expect(rig.feed.counts().slow).toBe(0)
})

test.each([
  ['first place', isHubsPlace],
  ['connection', isLive],
])('a reader receives a row that is written while the hub waits for its %s', async (_, matches) => {
  const { db, proxy, run, collect } = await createProxiedFeed()
  const held = hold('request')
  proxy.next(held.fault, matches)
  run()
  const reader = collect()
  await eventually(() => expect([held.isThere(), reader.reading.isBehind]).toEqual([true, false]))
  await db.report('updated:a')
  held.release()
  await eventually(() => expect(reader.ids()).toEqual(['updated:a']))
})

test('a row from the hub during the last page request is not lost', async () => {
  const { db, feed, connect, collectDuringPage } = await createProxiedFeed()
  await connect()
  const { reader, release } = await collectDuringPage()
  await db.report('updated:a')
  await eventually(() => expect(feed.counts().rows).toBe(1))
  release()
  await eventually(() => expect(reader.ids()).toEqual(['updated:a']))
})

test('a row from a page is not repeated, however late the hub delivers it', async () => {
  const clock = createManualClock()
  const { db, proxy, feed, run, collect } = await createProxiedFeed(clock)
  const held = hold('request')
  proxy.next(held.fault, isLive)
  run()
  await eventually(() => expect(held.isThere()).toBe(true))
  await db.report('updated:a')
  const reader = collect()
  await eventually(() => expect(reader.ids()).toEqual(['updated:a']))
  await clock.advance(10_000) // a heartbeat, at which CouchDB sends rows that it overlooked
  held.release()
  await eventually(() => expect(feed.counts().rows).toBe(1))
  await db.report('updated:b')
  await eventually(() => expect(reader.ids()).toContain('updated:b'))
  expect(reader.ids()).toEqual(['updated:a', 'updated:b'])
})

test.each([
  ['its first place', 'answer', isHubsPlace],
  ['its connection', 'request', isLive],
] as const)('rows of two pages are not repeated when the hub waits for %s', async (_, what, matches) => {
  const { db, proxy, feed, run, open, signal } = await createProxiedFeed()
  const held = hold(what)
  proxy.next(held.fault, matches)
  run()
  await eventually(() => expect(held.isThere()).toBe(true))
  await db.report(...updatesOf(5))
  const reader = open()
  const rows = [...(await reader.next(3, signal)), ...(await reader.next(3, signal))]
  expect([rows.length, reader.isBehind]).toEqual([5, false])
  const untilLast = (async () => {
    while (rows.at(-1)!.id !== 'updated:last') rows.push(...(await reader.next(10, signal)))
  })()
  held.release()
  await eventually(() => expect(feed.counts().rows).toBe(5))
  await db.report('updated:last')
  await untilLast
  expect(rows.map(({ id }) => id).sort()).toEqual([...updatesOf(5), 'updated:last'])
})

/** A cluster with a lagging copy: the page of a reader lacks a row that the hub has already delivered. */
async function meetUnevenCopies() {
  const clock = createManualClock()
  const rig = await createProxiedFeed(clock)
  const { db, proxy, feed, collect, connect } = rig
  const isInfo = (request: SeenRequest) => request.path === `/${db.name}`
  proxy.plan((request) => (isInfo(request) ? changeJson((info) => ({ ...info, cluster: { n: 3 } })) : undefined))
  await connect()
  const since = (await db.info()).update_seq
  await db.report('updated:a')
  await eventually(() => expect(feed.counts().rows).toBe(1))
  const lackAll = () =>
    proxy.next(
      changeJson((page) => ({ ...page, results: [], last_seq: since })),
      isPage,
    )
  lackAll()
  const reader = collect({ since })
  await eventually(() => expect(reader.reading.isBehind).toBe(false))
  await clock.advance(4000)
  expect(reader.ids()).toEqual([])
  return { ...rig, clock, lackAll, reader }
}

test('a reader on a cluster gets the rows that its page lacked once the lagging copy has them', async () => {
  const { db, clock, feed, reader } = await meetUnevenCopies()
  await clock.advance(2000)
  await eventually(() => expect(reader.ids()).toEqual(['updated:a']))
  await clock.advance(10_000)
  const { pages } = feed.counts()
  await db.report('updated:b')
  await eventually(() => expect(reader.ids()).toEqual(['updated:a', 'updated:b']))
  expect(feed.counts().pages, 'the reader requests no more pages').toBe(pages)
})

test('a reader on a cluster repeats its page until it has the missing rows, then gives the next row', async () => {
  const { db, clock, feed, lackAll, reader } = await meetUnevenCopies()
  const { pages } = feed.counts()
  lackAll()
  await db.report('updated:b')
  await eventually(() => expect(feed.counts().pages).toBe(pages + 1))
  expect(reader.ids()).toEqual([])
  await clock.advance(200)
  await eventually(() => expect(reader.ids()).toEqual(['updated:a', 'updated:b']))
  expect(feed.counts().pages).toBe(pages + 2)
})

test('a reader with since=now on a cluster repeats no page', async () => {
  const { db, feed, collect } = await meetUnevenCopies()
  const { pages } = feed.counts()
  const reader = collect({ since: NOW })
  await eventually(() => expect(reader.reading.isBehind).toBe(false))
  await db.report('updated:b')
  await eventually(() => expect(reader.ids()).toEqual(['updated:b']))
  expect(feed.counts().pages).toBeLessThanOrEqual(pages + 2)
})

test('two hundred readers share one feed and read one page each', async () => {
  const { db, proxy, feed, collect, connect } = await createProxiedFeed()
  await connect()
  const readers = Array.from({ length: 200 }, () => collect({ since: NOW }))
  for (const { reading } of readers) await eventually(() => expect(reading.isBehind).toBe(false))
  for (let round = 0; round < 3; round++) await db.report(...updatesOf(2, round * 2))
  for (const { ids } of readers) await eventually(() => expect(ids()).toEqual(updatesOf(6)))
  expect(proxy.requests.filter(isLive)).toHaveLength(1)
  expect(proxy.requests.filter((request) => isPage(request) && !isHubsPlace(request))).toHaveLength(200)
  expect(feed.counts()).toEqual({ readers: 200, rows: 6, pages: 200, slow: 0 })
  for (const { leave } of readers) leave()
  await eventually(() => expect(feed.counts().readers).toBe(0))
})

test('a slow reader buffers the last row of each database and starts over when the buffer is full', async () => {
  const { db, feed, run, open, collect, signal } = await createProxiedFeed()
  run()
  const quick = collect({ since: NOW })
  const slow = open({ since: NOW })
  expect(await slow.next(10, signal)).toEqual([])
  await eventually(() => expect(quick.reading.isBehind).toBe(false))
  for (let round = 0; round < 3; round++) await db.report('updated:a', 'updated:b')
  const third = ['updated:a 3', 'updated:b 3']
  const namesOf = (updates: readonly Update[]) => updates.map(({ id, rev }) => `${id} ${parseInt(rev)}`).sort()
  await eventually(() => expect(namesOf(quick.updates)).toEqual(expect.arrayContaining(third)))
  expect(namesOf(await slow.next(10, signal))).toEqual(third)
  const { pages } = feed.counts()
  const ids = updatesOf(1300)
  await db.report(...ids)
  await eventually(() => expect(feed.counts().slow).toBe(1))
  expect(slow.isBehind).toBe(true)
  const taken = []
  do taken.push(...(await slow.next(200, signal)))
  while (slow.isBehind)
  expect(taken.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(feed.counts().pages - pages, 'the reader requests each page once').toBe(Math.ceil(1301 / 200))
})

test('a reader of one row at a time has the right sequence after each row', async () => {
  const { db, open, signal, connect } = await createProxiedFeed()
  await db.report(...updatesOf(5))
  await connect()
  const first = open()
  const ids: string[] = []
  for (let round = 0; round < 5; round++) ids.push((await first.next(1, signal))[0]!.id)
  expect(ids.sort()).toEqual(updatesOf(5))
  expect(await first.next(1, signal)).toEqual([])
  await db.report('updated:a', 'updated:b', 'updated:c')
  const one = await first.next(1, signal)
  const rest = open({ since: first.lastSeq })
  const others = await rest.next(10, signal)
  expect([...one, ...others].map(({ id }) => id).sort()).toEqual(['updated:a', 'updated:b', 'updated:c'])
})
