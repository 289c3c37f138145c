/** The history of ended entries. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import type { EventMap } from '../../sidecar/events/map.ts'
import {
  databaseOf,
  dropOldDatabases,
  historyDatabases,
  makeHistoryDatabase,
} from '../../sidecar/history/history-databases.ts'
import { HistoryWriter } from '../../sidecar/history/history-writer.ts'
import { readHistory } from '../../sidecar/history/read-history.ts'
import { Reject } from '../../sidecar/index.ts'
import { startRig } from '../docstate/rig.ts'
import { createTestCouch, deleteDb, freshDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { answerWith } from '../support/faults.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const { signal } = new AbortController()

function createName(): string {
  const name = uniqueName('history')
  onTestFinished(async () => {
    for (const database of await historyDatabases(createTestCouch(), name, signal)) await deleteDb(database)
  })
  return name
}

function startWriter(couch: Couch, name: string) {
  const log = pino({ level: 'silent' })
  const stopping = new AbortController()
  const writer = new HistoryWriter({ couch, name, worker: 'w', clock: systemClock, random: Math.random, log })
  const running = writer.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  onTestFinished(stop)
  return { writer, stop }
}

const entry = (id: string, more: Partial<EventMap['entry:ended']> = {}): EventMap['entry:ended'] => ({
  ...{ database: 'shop', id, type: 'order', state: 'paid', next: 'invoiced', rev: '3-a', key: 'abcdefghij' },
  ...{ mode: 'unsafe', ms: 1.6, attempts: 0, version: null, code: null, reason: null },
  ...more,
})

const read = (name: string, database: string, id: string) =>
  readHistory(createTestCouch(), { name, database, id }, signal)

test('each ended entry is stored once: saved, left unchanged, failed for good, or ended by its timeout', async () => {
  const db = await freshDb('history')
  const name = createName()
  const log = pino({ level: 'silent' })
  const events = createEvents({ log })
  const { writer } = startWriter(createTestCouch(), name)
  events.subscribe('entry:ended', ({ event }) => writer.add(event))
  const machines = {
    order: {
      paid: { mode: 'unsafe', next: { shipped: 'sidecar' } },
      shipped: { mode: 'safe', next: { late: 'sidecar' }, timeout: { afterMs: 500, next: 'late' } },
      late: {},
      bad: { mode: 'safe' },
    },
  } as const
  let tries = 0
  await startRig(
    db,
    (control) => {
      const backoff = { baseMs: 1, capMs: 1 }
      control.unsafe(
        'order',
        'paid',
        async (order) => {
          await new Promise((resolve) => setTimeout(resolve, 30))
          if (tries++ === 0) throw new Error('not yet')
          return { ...order, state: 'shipped' }
        },
        { backoff, version: '7' },
      )
      control.safe('order', 'shipped', () => Promise.resolve())
      control.safe('order', 'bad', () => Promise.reject(new Reject('no_stock', 'none left')))
    },
    { machines, events },
  )
  await db.put({ _id: 'a:b/c', type: 'order', state: 'paid' })
  await db.put({ _id: 'x', type: 'order', state: 'bad' })
  await eventually(async () => expect(await read(name, db.name, 'a:b/c')).toHaveLength(3))
  const [paid, shipped, late] = await read(name, db.name, 'a:b/c')
  expect(paid).toMatchObject({
    ...{ type: 'history', database: db.name, doc: 'a:b/c', of_type: 'order', from: 'paid', to: 'shipped' },
    ...{ by: 'unsafe', worker: 'w', failed_tries: 1, version: '7' },
  })
  expect(paid!.ms).toBeGreaterThanOrEqual(29)
  expect(shipped).toMatchObject({ from: 'shipped', to: 'shipped', by: 'safe', failed_tries: 0 })
  expect(late).toMatchObject({ from: 'shipped', to: 'late', by: 'time' })
  expect(late).not.toHaveProperty('state')
  await eventually(async () => expect(await read(name, db.name, 'x')).toHaveLength(1))
  expect((await read(name, db.name, 'x'))[0]).toMatchObject({
    ...{ from: 'bad', to: 'error', failure: { code: 'no_stock', reason: 'none left' } },
  })
})

test('many entries are written together, and pending ones are written at the stop', async () => {
  const name = createName()
  const proxy = await startFaultyProxy()
  const { writer, stop } = startWriter(createTestCouch({ url: proxy.url }), name)
  for (let n = 0; n < 200; n++) writer.add(entry(`o${n}`))
  await stop()
  const bulks = proxy.requests.filter(({ path }) => path.endsWith('/_bulk_docs'))
  expect(bulks.length).toBeLessThanOrEqual(3) // the first finds no database, one can be interrupted
  const [database] = await historyDatabases(createTestCouch(), name, signal)
  expect(await createTestCouch().db(database!).info()).toMatchObject({ doc_count: 200 })
})

test('entries survive failed writes to CouchDB, and a lost answer stores none twice', async () => {
  const name = createName()
  const proxy = await startFaultyProxy()
  const { writer } = startWriter(createTestCouch({ url: proxy.url }), name)
  writer.add(entry('before'))
  await eventually(async () => expect(await read(name, 'shop', 'before')).toHaveLength(1))
  proxy.plan(({ path }) => (path.endsWith('/_bulk_docs') ? refuse(503) : undefined))
  for (let n = 0; n < 10; n++) writer.add(entry('later', { key: `key-${n}-of-it` }))
  await eventually(() =>
    expect(proxy.requests.filter(({ path }) => path.endsWith('/_bulk_docs')).length).toBeGreaterThan(3),
  )
  // A row with a transient error (a killed couchjs) is no answer: the entry is written again.
  proxy.plan(() => undefined)
  proxy.next(
    async (exchange) => {
      const { docs } = JSON.parse(exchange.request.body) as { docs: { _id: string }[] }
      const rows = docs.map(({ _id: id }) => ({ id, error: 'os_process_error', reason: 'killed' }))
      await answerWith(201, JSON.stringify(rows))(exchange)
    },
    ({ path }) => path.endsWith('/_bulk_docs'),
  )
  await eventually(async () => expect(await read(name, 'shop', 'later')).toHaveLength(10))
})

test('a week’s database is deleted when its last day is too old; other databases are kept', async () => {
  const couch = createTestCouch()
  const name = createName()
  const now = Date.parse('2026-11-25T12:00:00Z') // a Wednesday
  expect(databaseOf(name, now)).toBe(`${name}-2026-11-23`)
  expect(databaseOf(name, Date.parse('2026-11-23T00:00:00Z'))).toBe(`${name}-2026-11-23`)
  expect(databaseOf(name, Date.parse('2026-11-22T23:59:59Z'))).toBe(`${name}-2026-11-16`)
  for (let weeks = 0; weeks < 4; weeks++)
    await makeHistoryDatabase(couch, databaseOf(name, now - weeks * WEEK_MS), signal)
  const others = [`${name}-2026-10-05`, `${name}-2026-10-06`, `${name}-old`]
  for (const other of others) {
    await couch.db(other).create()
    onTestFinished(() => deleteDb(other))
  }
  const drop = (ageDays: number) => dropOldDatabases(couch, { name, ageMs: ageDays * DAY_MS, now }, signal)
  expect(await drop(30)).toEqual([])
  expect(await drop(15)).toEqual([`${name}-2026-11-02`])
  expect(await drop(2)).toEqual([`${name}-2026-11-16`, `${name}-2026-11-09`])
  for (const other of others) expect(await couch.db(other).info()).toBeDefined()
})
