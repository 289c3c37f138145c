/** The feed of a visited database: read in pages, when it may have changes. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { Semaphore } from '../../sidecar/core/semaphore.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { seqFrom, type Seq } from '../../sidecar/couch/documents.ts'
import { Bell } from '../../sidecar/feed/bell.ts'
import { pagesOf, type Change } from '../../sidecar/feed/change.ts'
import type { FeedEvent, Checkpoint } from '../../sidecar/feed/follow.ts'
import { readOnRing } from '../../sidecar/feed/read.ts'
import { createTestCouch, freshDb, makeAgain, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterBytes,
  delay,
  inject,
  inPieces,
  refuse,
  startFaultyProxy,
  type Fault,
  type SeenRequest,
} from '../support/faulty-proxy.ts'

const isFeed = ({ path }: SeenRequest) => path.endsWith('/_changes')

/** Reads a database through a faulty proxy, from this checkpoint on; all its events are recorded. */
async function setUp({ db, from }: { db?: Database; from?: Checkpoint } = {}) {
  db ??= await freshDb('read')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const [bell, stopping] = [new Bell(), new AbortController()]
  const events: FeedEvent<Change>[] = []
  const options = {
    ...{
      readPage: pagesOf(through),
      from,
      bell,
      semaphore: new Semaphore(() => 1),
      clock: systemClock,
      random: () => 0.5,
    },
    life: (checkpoint: Seq | undefined, signal: AbortSignal) => through.life(checkpoint, { signal }),
  }
  const run = async () => {
    for await (const event of readOnRing(options, stopping.signal)) events.push(event)
  }
  const running = run()
  onTestFinished(async () => {
    stopping.abort(new Error('the test is over'))
    await running
  })
  const ids = () => events.flatMap((event) => (event.kind === 'rows' ? event.rows.map(({ id }) => id) : []))
  const whys = () => events.flatMap((event) => (event.kind === 'restarted' ? [event.why] : []))
  const lastKind = () => events.at(-1)?.kind
  return { db, proxy, bell, ids, whys, lastKind }
}

const write = (db: { bulk(docs: string[]): Promise<unknown> }, from: number, to: number) =>
  db.bulk(Array.from({ length: to - from }, (_, i) => JSON.stringify({ _id: `d${from + i}`, name: '🐘'.repeat(20) })))
const all = (count: number) => Array.from({ length: count }, (_, i) => `d${i}`).sort()

const faults: [string, Fault][] = [
  ['a 500', refuse(500)],
  ['a 429', refuse(429)],
  ['a 503 of a node in maintenance', refuse(503)],
  ['a page of a proxy', inject('<html>502 Bad Gateway</html>\n')],
  ['a connection that breaks before the answer', cut],
  ['a connection that breaks in the middle of a character', cutAfterBytes(1003)],
  ['an answer in single bytes', inPieces(1)],
  ['an answer that comes late', delay(300)],
]
test.each(faults)('every change is read once, despite %s', async (_, fault) => {
  const { db, proxy, bell, ids, lastKind } = await setUp()
  await write(db, 0, 40)
  proxy.next(fault, isFeed)
  bell.ring()
  await eventually(() => expect(ids().sort()).toEqual(all(40)))
  await eventually(() => expect(lastKind()).toBe('caught-up'))
  proxy.next(fault, isFeed)
  await write(db, 40, 42)
  bell.ring()
  await eventually(() => expect(ids().sort()).toEqual(all(42)))
})

test('the reader sends no request before its notification, and none after the last change', async () => {
  const { db, proxy, bell, lastKind } = await setUp()
  await write(db, 0, 2)
  expect(proxy.requests).toEqual([])
  bell.ring()
  await eventually(() => expect(lastKind()).toBe('caught-up'))
  expect(bell.isRinging).toBe(false)
  const { length } = proxy.requests
  await write(db, 2, 4)
  await expect(
    eventually(() => expect(proxy.requests.length).toBeGreaterThan(length), { within: 500 }),
  ).rejects.toThrow()
})

test('an invalid checkpoint is reported, and the feed begins at its start', async () => {
  needs('feed parameters')
  const { db, bell, ids, whys } = await setUp({ from: { seq: seqFrom('rubbish') } })
  await write(db, 0, 6)
  bell.ring()
  await eventually(() => expect(ids().sort()).toEqual(all(6)))
  expect(whys()).toEqual(['malformed-checkpoint'])
})

test('a database that was created again is read from its start', async () => {
  needs('database identity')
  const db = await freshDb('read')
  await write(db, 0, 3)
  const { update_seq: seq, instance_start_time: life } = await db.info()
  await makeAgain(db)
  await write(db, 0, 4)
  const { bell, ids, whys } = await setUp({ db, from: { seq, life } })
  bell.ring()
  await eventually(() => expect(ids().sort()).toEqual(all(4)))
  expect(whys()).toEqual(['database-recreated'])
})
