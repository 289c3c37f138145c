import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { updatesOf } from '../reading/event-database.ts'
import { hold } from '../reading/faults.ts'
import { isPage } from '../reading/rig.ts'
import { eventually } from '../../support/eventually.ts'
import { cutAfterBytes, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { thoroughTest } from '../../support/thorough.ts'
import { admin, idsOf, openFeed, rowsIn, start, type Listed } from './db-updates-rig.ts'

const endless = ['longpoll', 'continuous', 'eventsource'] as const
const beats = { longpoll: '\n', continuous: '\n', eventsource: 'event: heartbeat\ndata: \n\n' }

test('a continuous feed starts at once with a newline and sends rows as they arrive', async () => {
  const { db, url } = await start({ existing: ['updated:old'] })
  const reader = await openFeed(`${url}?feed=continuous&since=now`)
  await eventually(() => expect(reader.text).toBe('\n'))
  await db.report('created:a', 'updated:a')
  await eventually(() => expect(idsOf(reader.rows())).toEqual(['created:a', 'updated:a']))
  await db.report('deleted:a')
  await eventually(() => expect(idsOf(reader.rows())).toEqual(['created:a', 'deleted:a', 'updated:a']))
  expect(reader.ended).toBe(false)
})

test('a continuous feed with rows starts without a newline', async () => {
  const { url } = await start({ existing: ['updated:old'] })
  const reader = await openFeed(`${url}?feed=continuous`)
  await eventually(() => expect(reader.text).toMatch(/^\{"db_name":"old",.*\}\n$/))
})

test('a longpoll ends with the first rows that arrive', async () => {
  const { db, url, get } = await start({ existing: ['updated:old'] })
  const reader = await openFeed(`${url}?feed=longpoll&since=now`)
  await eventually(() => expect(reader.text).toBe('{"results":[\n'))
  await db.report('note')
  await db.report('created:a')
  await eventually(() => expect(reader.ended).toBe(true))
  const { results, last_seq } = JSON.parse(reader.text) as Listed
  expect(idsOf(results)).toEqual(['created:a'])
  await db.report('updated:a')
  const next = (await (await get(`?feed=longpoll&since=${last_seq}`)).json()) as Listed
  expect(idsOf(next.results)).toEqual(['updated:a'])
})

test('an event source continues after rows and heartbeats, and each row has its sequence', async () => {
  const { db, url } = await start({ existing: ['updated:old'] })
  const reader = await openFeed(`${url}?feed=eventsource&since=now&heartbeat=20`)
  await eventually(() => expect(reader.text.match(/^event: heartbeat\ndata: \n\n/gm)?.length).toBeGreaterThan(2))
  await db.report('created:a')
  await eventually(() => expect(idsOf(reader.rows())).toEqual(['created:a']))
  const { seq } = reader.rows()[0]!
  expect(reader.text).toContain(`"seq":${JSON.stringify(seq)},"account":"_admin"}\nid: ${JSON.stringify(seq)}\n\n`)
  await db.report('updated:a')
  await eventually(() => expect(idsOf(reader.rows())).toEqual(['created:a', 'updated:a']))
})

test('an event source sends its sequence before its first row, so that a reconnect misses nothing', async () => {
  const { db, url, get } = await start({ existing: ['updated:old'] })
  const reader = await openFeed(`${url}?feed=eventsource&since=now`)
  await eventually(() => expect(reader.text).toMatch(/^id: .*\n\n$/))
  reader.leave()
  await db.report('updated:new')
  const headers = { ...admin, 'Last-Event-ID': reader.text.slice('id: '.length).trim() }
  const text = await (await get('?feed=eventsource&since=now&timeout=30', headers)).text()
  expect(idsOf(rowsIn(text))).toEqual(['updated:new'])
})

test.each(endless)('%s: a heartbeat follows each idle heartbeat interval, and true means one minute', async (feed) => {
  const clock = createManualClock()
  const { db, url } = await start({ clock })
  for (const [heartbeat, ms] of [
    ['1000', 1000],
    ['true', 60_000],
    ['90000', 60_000],
  ] as const) {
    const reader = await openFeed(`${url}?feed=${feed}&since=now&heartbeat=${heartbeat}&timeout=10`)
    await eventually(() => expect([reader.text !== '', clock.sleeping]).toEqual([true, 1]))
    const { length } = reader.text
    const beaten = (times: number) =>
      eventually(() => expect(reader.text.slice(length)).toBe(beats[feed].repeat(times)))
    await clock.advance(ms - 1)
    await beaten(0)
    await clock.advance(1)
    await beaten(1)
    await clock.advance(2 * ms)
    await beaten(3)
    reader.leave()
    await eventually(() => expect(clock.sleeping).toBe(0))
  }
  await db.report('updated:a') // the database had no row
})

test.each(endless)('%s: the feed ends after its timeout without a row, after one minute at most', async (feed) => {
  const clock = createManualClock()
  const { url } = await start({ clock })
  for (const [query, ms] of [
    ['', 60_000],
    ['&timeout=500', 500],
    ['&timeout=90000', 60_000],
    ['&timeout=500&heartbeat=false', 500],
  ] as const) {
    const reader = await openFeed(`${url}?feed=${feed}&since=now${query}`)
    await eventually(() => expect([reader.text !== '', clock.sleeping]).toEqual([true, 1]))
    await clock.advance(ms - 1)
    expect([reader.ended, clock.sleeping]).toEqual([false, 1])
    await clock.advance(1)
    await eventually(() => expect(reader.ended).toBe(true))
    if (feed !== 'eventsource') expect(reader.text).toMatch(/"last_seq":.*\}\n$/)
  }
})

test.each(endless)('%s: the feed ends when its timeout passes while it checks for rows', async (feed) => {
  const clock = createManualClock()
  const proxy = await startFaultyProxy()
  const [begin, look] = [hold('request'), hold('request')]
  proxy.next(begin.fault, isPage) // the first sequence of the shared feed, from which all readers read again
  const { url } = await start({ url: proxy.url, clock })
  await eventually(() => expect(begin.isThere()).toBe(true))
  const reader = await openFeed(`${url}?feed=${feed}&since=now&timeout=500`)
  await eventually(() => expect([reader.text !== '', clock.sleeping]).toEqual([true, 1]))
  proxy.next(look.fault, isPage)
  begin.release()
  await eventually(() => expect(look.isThere()).toBe(true))
  await clock.advance(500)
  expect(reader.ended).toBe(false)
  look.release()
  await eventually(() => expect(reader.ended).toBe(true))
})

test('each row restarts the timeout of a continuous feed', async () => {
  const clock = createManualClock()
  const { db, url } = await start({ clock })
  const reader = await openFeed(`${url}?feed=continuous&since=now&timeout=1000`)
  for (let round = 1; round <= 3; round++) {
    await eventually(() => expect(clock.sleeping).toBe(1))
    await clock.advance(900)
    await db.report('updated:a')
    await eventually(() => expect(reader.rows()).toHaveLength(round))
  }
  await eventually(() => expect(clock.sleeping).toBe(1))
  await clock.advance(1000)
  await eventually(() => expect(reader.ended).toBe(true))
})

test.each(endless)('%s: the feed ends with its last allowed row, whose sequence continues correctly', async (feed) => {
  const { db, url, get } = await start()
  const reader = await openFeed(`${url}?feed=${feed}&since=now&limit=1`)
  await eventually(() => expect(reader.text).not.toBe(''))
  await db.report('updated:a', 'updated:b', 'updated:c')
  await eventually(() => expect(reader.ended).toBe(true))
  expect(rowsIn(reader.text)).toHaveLength(1)
  const { seq, db_name } = rowsIn(reader.text)[0]!
  const rest = (await (await get(`?since=${seq}`)).json()) as Listed
  expect([db_name, ...rest.results.map((row) => row.db_name)].sort()).toEqual(['a', 'b', 'c'])
})

test('a stop ends every open feed cleanly, and every later feed at once', async () => {
  const { db, url, get, stop, feed: updates } = await start({ existing: ['updated:old'] })
  const readers = await Promise.all(endless.map((feed) => openFeed(`${url}?feed=${feed}&since=now&heartbeat=60000`)))
  for (const reader of readers) await eventually(() => expect(reader.text).not.toBe(''))
  await stop()
  for (const reader of readers) await eventually(() => expect(reader.ended).toBe(true))
  const [longpoll, continuous] = readers
  const { last_seq } = JSON.parse(longpoll!.text) as Listed
  expect(continuous!.text).toBe(`\n{"last_seq":${JSON.stringify(last_seq)}}\n`)
  expect(updates.counts().readers).toBe(0)
  await db.report('updated:new')
  for (const feed of endless) {
    const text = await (await get(`?feed=${feed}&since=${last_seq}&heartbeat=60000`)).text()
    expect(idsOf(rowsIn(text))).toEqual(['updated:new'])
  }
})

test('a normal answer in progress is completed after a stop', async () => {
  const proxy = await startFaultyProxy()
  const { get, stop } = await start({ url: proxy.url, existing: updatesOf(501) })
  const held = hold('request')
  proxy.next(
    held.fault,
    (request) => isPage(request) && request.query.get('since') !== '0' && request.query.get('limit') !== '0',
  )
  const response = await get()
  await eventually(() => expect(held.isThere()).toBe(true))
  await stop()
  held.release()
  expect(((await response.json()) as Listed).results).toHaveLength(501)
})

test('after a client disconnects, no reader and no request remain, for any kind of wait', async () => {
  const proxy = await startFaultyProxy()
  const { url, feed, port } = await start({ url: proxy.url, existing: updatesOf(3) })
  const waiting = await Promise.all(endless.map((feed) => openFeed(`${url}?feed=${feed}&since=now&heartbeat=60000`)))
  expect(feed.counts().readers).toBe(3)
  for (const reader of waiting) reader.leave()
  await eventually(() => expect(feed.counts().readers).toBe(0))
  let gone = false
  proxy.next((exchange) => void exchange.wait(60_000).then(() => (gone = true)), isPage)
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  client.write(`GET /_db_updates?feed=continuous HTTP/1.1\r\nHost: x\r\nAuthorization: ${admin.authorization}\r\n\r\n`)
  await eventually(() => expect(feed.counts().readers).toBe(1))
  client.destroy()
  await eventually(() => expect([gone, feed.counts().readers]).toEqual([true, 0]))
})

thoroughTest('after a client with unread rows disconnects, no reader remains', async () => {
  const { db, feed, port } = await start()
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  await once(client, 'connect')
  client
    .pause()
    .write(`GET /_db_updates?feed=continuous HTTP/1.1\r\nHost: x\r\nAuthorization: ${admin.authorization}\r\n\r\n`)
  await eventually(() => expect(feed.counts().readers).toBe(1))
  const long = (prefix: string) => Array.from({ length: 1100 }, (_, i) => `updated:${prefix}${String(i).repeat(2000)}`)
  for (let round = 0; feed.counts().slow === 0; round++) await db.report(...long(`x${round}`))
  client.destroy()
  await eventually(() => expect(feed.counts().readers).toBe(0))
})

test('a slow client gets the last row of each database, without duplicates', async () => {
  const { db, feed, port } = await start()
  const long = (prefix: string) => Array.from({ length: 600 }, (_, i) => `updated:${prefix}${String(i).repeat(2000)}`)
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  await once(client, 'connect')
  const head = `Host: x\r\nAuthorization: ${admin.authorization}\r\nConnection: close\r\n\r\n`
  client.pause().write(`GET /_db_updates?feed=continuous&since=now&heartbeat=1000 HTTP/1.1\r\n${head}`)
  await eventually(() => expect(feed.counts().pages).toBeGreaterThan(0))
  let rounds = 0
  for (; feed.counts().slow === 0; rounds++) await db.report(...long('a'), ...long('b')) // until all buffers are full
  await db.report(...long('a'), ...long('b'), ...long('c'))
  let text = ''
  client.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk))
  client.resume()
  const rows = await eventually(() => {
    expect(text).toMatch(/\}\n\r\n1\r\n\n\r\n$/) // ends with a heartbeat: no row is cut
    const received = rowsIn(text.replace(/\r\n[0-9a-f]+\r\n/g, '')) // without chunk sizes
    expect(new Set(received.map(({ db_name }) => db_name)).size).toBe(1800)
    return received
  })
  expect(new Set(rows.map(({ db_name, seq }) => `${db_name} ${seq}`)).size).toBe(rows.length)
  expect(rows.filter(({ db_name }) => db_name.startsWith('c'))).toHaveLength(600)
  expect(rows.length, 'fewer rows than were written').toBeLessThan((rounds + 1) * 1200 + 600)
})

test('a normal answer is cut off if CouchDB breaks off before the last row', async () => {
  const proxy = await startFaultyProxy()
  const { get } = await start({ url: proxy.url, existing: updatesOf(500) })
  proxy.next(cutAfterBytes(20_000), ({ query }) => query.has('descending'))
  const response = await get('?descending=true')
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
})

test('while the server is unreachable, new clients get an error, and open feeds wait', async () => {
  const proxy = await startFaultyProxy()
  const { db, url, get } = await start({ url: proxy.url })
  const reader = await openFeed(`${url}?feed=continuous&since=now&heartbeat=20`)
  await eventually(() => expect(reader.text).not.toBe(''))
  await proxy.down()
  expect((await get()).status).toBe(503)
  await db.report('updated:a')
  const { length } = reader.text
  await eventually(() => expect(reader.text.length).toBeGreaterThan(length + 2))
  await proxy.up()
  await eventually(() => expect(idsOf(reader.rows())).toEqual(['updated:a']))
})
