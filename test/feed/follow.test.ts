import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { seqFrom } from '../../sidecar/couch/documents.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { changesOf, type Change } from '../../sidecar/feed/change.ts'
import { follow, type FeedEvent, type FollowOptions } from '../../sidecar/feed/follow.ts'
import { createAgain, createTestCouch, deleteDb, freshDb, needs, nextSecond } from '../support/couchdb.ts'
import { answerOf } from '../support/answers.ts'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterBytes,
  cutInLine,
  delay,
  inject,
  inPieces,
  pass,
  refuse,
  silence,
  silenceAfterBytes,
  startFaultyProxy,
  type Fault,
  type SeenRequest,
} from '../support/faulty-proxy.ts'

const isFeed = (request: SeenRequest) => request.path.includes('/_changes')
const isContinuous = (request: SeenRequest) => isFeed(request) && request.query.get('feed') === 'continuous'
const isPage = (request: SeenRequest) => isFeed(request) && !isContinuous(request)

/** A follower of a database behind a faulty proxy; all its events are recorded. */
async function setUp({ hasPages = true, ...options }: Partial<FollowOptions<Change>> & { hasPages?: boolean } = {}) {
  const db = await freshDb('feed')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const stopping = new AbortController()
  const events: FeedEvent<Change>[] = []
  const ids: string[] = []
  const sourceOf = (database: Database) => {
    const { page, ...source } = changesOf(database)
    return hasPages ? { ...source, page: page! } : source
  }
  const run = async () => {
    const feed = follow(
      {
        source: sourceOf(couch.db(db.name)),
        clock: systemClock,
        random: () => 0.5,
        heartbeatMs: 200,
        slowlyMs: 300,
        ...options,
      },
      stopping.signal,
    )
    for await (const event of feed) {
      events.push(event)
      if (event.kind === 'rows') ids.push(...event.rows.map((row) => row.id))
    }
  }
  let running: Promise<void> | undefined
  const start = () => void (running = run())
  const stop = async () => {
    stopping.abort(new Error('the test is over'))
    await running
  }
  onTestFinished(stop)
  const kinds = () => events.map((event) => event.kind)
  return { db, proxy, couch, events, ids, kinds, start, stop }
}

const write = (db: { bulk(docs: string[]): Promise<unknown> }, from: number, to: number) =>
  db.bulk(
    Array.from({ length: to - from }, (_, i) =>
      JSON.stringify({ _id: `d${from + i}`, name: `Jürgen ${'🐘'.repeat(5)}` }),
    ),
  )

const all = (n: number) => Array.from({ length: n }, (_, i) => `d${i}`).sort()
const distinct = (ids: string[]) => [...new Set(ids)].sort()

test('the follower emits every document, reports when it has caught up, and continues with new ones', async () => {
  const { db, ids, kinds, events, start } = await setUp()
  await write(db, 0, 30)
  start()
  await eventually(() => expect(kinds()).toContain('caught-up'))
  expect(distinct(ids)).toEqual(all(30))
  await write(db, 30, 31)
  await eventually(() => expect(distinct(ids)).toEqual(all(31)))
  const row = events.flatMap((event) => (event.kind === 'rows' ? event.rows : [])).at(-1)
  expect(row).toMatchObject({ id: 'd30', deleted: false, doc: { _id: 'd30', name: `Jürgen ${'🐘'.repeat(5)}` } })
})

const passing: [string, Fault][] = [
  ['a 500', refuse(500)],
  ['a 429', refuse(429)],
  ['a 503 of a node in maintenance', refuse(503)],
  ['a connection that breaks before the answer', cut],
  ['a connection that breaks in the middle of a row', cutInLine(7)],
  ['a connection that breaks in the middle of a character', cutAfterBytes(1003)],
  ['a garbage line', inject('<html>502 Bad Gateway</html>\n', 5)],
  ['half of a foreign row', inject('{"seq":"9-x","id":\n', 5)],
  [
    'an error row',
    inject('{"error":"timeout","reason":"The request could not be processed in a reasonable amount of time."}\n', 3),
  ],
  ['rows cut into single bytes', inPieces(1)],
  ['an answer that comes late', delay(300)],
  ['a server that accepts the request and stays silent', silence],
  ['silence in the middle, without a heartbeat', silenceAfterBytes(1500)],
]
const inBoth = passing.flatMap(([name, fault]) => [
  [name, 'a page', fault] as const,
  [name, 'a connection', fault] as const,
])
test.each(inBoth)('the follower survives %s in %s, and no document is missing', async (_, where, fault) => {
  const { db, proxy, ids, start, kinds } = await setUp(where === 'a page' ? {} : { hasPages: false })
  await write(db, 0, 40)
  proxy.next(fault, isFeed)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(40)))
  await eventually(() => expect(kinds()).toContain('caught-up'))
  await write(db, 40, 42)
  await eventually(() => expect(distinct(ids)).toEqual(all(42)))
})

test('the follower survives all faults in sequence while documents are written', async () => {
  const { db, proxy, ids, start } = await setUp()
  for (const [, fault] of passing.filter(([name]) => !/silen|single/.test(name))) proxy.next(fault, isFeed)
  start()
  for (let i = 0; i < 20; i++) await write(db, i * 10, i * 10 + 10)
  await eventually(() => expect(distinct(ids)).toEqual(all(200)))
})

test('the follower waits for an unreachable server', async () => {
  const { db, proxy, ids, events, start, kinds } = await setUp()
  await write(db, 0, 5)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(5)))
  await proxy.down()
  await eventually(() => expect(kinds().filter((kind) => kind === 'broken').length).toBeGreaterThan(1))
  expect(events.find((event) => event.kind === 'broken')).toMatchObject({ error: { code: 'unreachable' } })
  await write(db, 5, 9)
  await proxy.up()
  await eventually(() => expect(distinct(ids)).toEqual(all(9)))
})

test.each([
  [401, 'unauthorized'],
  [403, 'forbidden'],
])('a %i status is reported and retried slowly', async (status, code) => {
  const { db, proxy, ids, events, start } = await setUp()
  await write(db, 0, 3)
  let refusing = true
  proxy.plan(() => (refusing ? refuse(status) : undefined))
  start()
  await eventually(() => expect(events.filter((event) => event.kind === 'broken').length).toBeGreaterThan(1))
  for (const event of events) expect(event).toMatchObject({ kind: 'broken', error: { code, status }, retryInMs: 300 })
  refusing = false
  await eventually(() => expect(distinct(ids)).toEqual(all(3)))
})

test('a feed that the server ends regularly continues from its last sequence', async () => {
  const { db, proxy, ids, start } = await setUp()
  await write(db, 0, 20)
  const { last_seq } = await answerOf<{ last_seq: unknown }>(createTestCouch(), { db: db.name, path: '_changes' })
  proxy.next(inject(`${JSON.stringify({ last_seq, pending: 0 })}\n`, 20), isFeed)
  proxy.next(cutAfterBytes(100_000), isFeed)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(20)))
  await write(db, 20, 25)
  await eventually(() => expect(distinct(ids)).toEqual(all(25)))
})

/** CouchDB before 3.4 sends nothing after the last requested row, and keeps the connection open. */
const withoutLimit: Fault = (exchange) => {
  exchange.request.query.delete('limit')
  return inPieces(300)(exchange)
}

test.each([
  ['that ends it', inPieces(300)],
  ['that leaves it open', withoutLimit],
])('a connection is replaced after a number of rows, on a server %s', async (_, fault) => {
  const { db, proxy, ids, kinds, start } = await setUp({ hasPages: false, rowsAConnection: 8 })
  await write(db, 0, 50)
  proxy.plan((request) => (isFeed(request) ? fault : undefined))
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(50)))
  await write(db, 50, 70)
  await eventually(() => expect(distinct(ids)).toEqual(all(70)))
  expect(ids.length, 'no row is repeated').toBe(70)
  expect(kinds().filter((kind) => kind === 'connected').length).toBeGreaterThan(70 / 8 - 1)
  expect(kinds()).not.toContain('broken')
})

test('a database deleted and created again is read from its start', async () => {
  needs('database identity')
  const { db, ids, start, kinds } = await setUp()
  await write(db, 0, 10)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(10)))
  await deleteDb(db.name)
  await eventually(() => expect(kinds()).toContain('broken'))
  ids.length = 0
  await nextSecond()
  await createAgain(db)
  await write(db, 0, 4)
  await eventually(() => expect(distinct(ids)).toEqual(all(4)))
  expect(kinds()).toContain('restarted')
})

test('an invalid stored checkpoint is reported, and the feed begins at its start', async () => {
  needs('feed parameters')
  const { db, ids, events, start } = await setUp({ from: { seq: seqFrom('rubbish') } })
  await write(db, 0, 6)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(6)))
  expect(events).toContainEqual({ kind: 'restarted', why: 'malformed-checkpoint' })
})

test('the feed continues from a stored checkpoint', async () => {
  const { db, ids, start } = await setUp()
  await write(db, 0, 5)
  const info = await db.info()
  await write(db, 5, 8)
  const stopping = new AbortController()
  const from = { seq: info.update_seq, life: String(info.instance_start_time) }
  const feed = follow(
    { source: changesOf(db), from, clock: systemClock, random: Math.random, heartbeatMs: 200 },
    stopping.signal,
  )
  for await (const event of feed) {
    if (event.kind === 'rows') ids.push(...event.rows.map((row) => row.id))
    if (event.kind === 'caught-up') break
  }
  expect(distinct(ids)).toEqual(['d5', 'd6', 'd7'])
  expect(start).toBeTypeOf('function')
})

test('a slow consumer slows the server: rows are not read ahead', async () => {
  const db = await freshDb('feed')
  const padding = 'x'.repeat(20_000)
  await db.bulk(Array.from({ length: 1500 }, (_, i) => JSON.stringify({ _id: `d${i}`, padding })))
  const proxy = await startFaultyProxy()
  let passed = 0
  proxy.plan((request) =>
    isFeed(request)
      ? async (exchange) => {
          const answer = await exchange.forward()
          const counted = async function* () {
            for await (const chunk of answer.body) {
              passed += chunk.length
              yield chunk
            }
          }
          await exchange.send({ ...answer, body: counted() })
          exchange.end()
        }
      : undefined,
  )
  const couch = createTestCouch({ url: proxy.url })
  const stopping = new AbortController()
  const options = { source: changesOf(couch.db(db.name)), clock: systemClock, random: Math.random, heartbeatMs: 500 }
  let read = 0
  for await (const event of follow(options, stopping.signal)) {
    if (event.kind !== 'rows') continue
    read += event.rows.length
    if (read >= 1500) break
    if (passed > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(passed - read * 20_000, 'bytes ahead of the consumer').toBeLessThan(20_000_000) // of 30 MB; the buffers of two sockets hold some of it
  }
  expect(read).toBe(1500)
})

test('the follower reports the remaining changes at the end of each connection', async () => {
  needs('feed parameters')
  const { db, events, kinds, start } = await setUp({ hasPages: false, rowsAConnection: 10 })
  await write(db, 0, 35)
  start()
  await eventually(() => expect(kinds()).toContain('caught-up'))
  const left = events.flatMap((event) => (event.kind === 'left' ? [event.changes] : []))
  expect(left).toEqual([25, 15, 5])
})

test('an abort closes the request at once, and the follower ends', async () => {
  const { db, proxy, kinds, start, stop } = await setUp({ heartbeatMs: 60_000 })
  await write(db, 0, 3)
  let gone = false
  proxy.next((exchange) => {
    void exchange.wait(60_000).then(() => (gone = true)) // ends early when the client disconnects
    return pass(exchange)
  }, isContinuous)
  start()
  await eventually(() => expect(kinds()).toContain('caught-up'))
  await eventually(() => expect(proxy.requests.filter(isContinuous)).toHaveLength(1))
  expect(gone).toBe(false)
  await stop()
  await eventually(() => expect(gone).toBe(true), { within: 20_000 })
})

test('a backlog is read in pages, then a connection stays open', async () => {
  const { db, proxy, ids, start } = await setUp()
  await write(db, 0, 700)
  start()
  await eventually(() => expect(distinct(ids)).toEqual(all(700)))
  await eventually(() => expect(proxy.requests.filter(isContinuous)).toHaveLength(1))
  await write(db, 700, 702)
  await eventually(() => expect(distinct(ids)).toEqual(all(702)))
  expect(ids, 'no row is repeated').toHaveLength(702)
  expect(proxy.requests.filter(isContinuous)).toHaveLength(1)
  expect(proxy.requests.filter(isPage).length).toBeLessThan(20)
})

test('a flood of changes is read in pages with pauses, and then a connection opens', async () => {
  const { db, proxy, ids, start } = await setUp({ rowsAConnection: 50 })
  start()
  await eventually(() => expect(proxy.requests.filter(isContinuous)).toHaveLength(1))
  const before = proxy.requests.filter(isPage).length
  for (let round = 0; round < 20; round++) await write(db, round * 60, round * 60 + 60)
  await eventually(() => expect(distinct(ids)).toEqual(all(1200)))
  expect(proxy.requests.filter(isPage).length).toBeGreaterThan(before)
  const open = proxy.requests.filter(isContinuous).length
  await new Promise((resolve) => setTimeout(resolve, 1500)) // an idle feed must not request page after page
  expect(proxy.requests.filter(isContinuous).length).toBeLessThanOrEqual(open + 1)
  await write(db, 1200, 1201)
  await eventually(() => expect(ids).toContain('d1200'))
})
