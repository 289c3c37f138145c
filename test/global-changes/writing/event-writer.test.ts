import pino from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../sidecar/core/clock.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import { EventWriter } from '../../../sidecar/global-changes/writing/event-writer.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { cutAfterUpstream, refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const idsIn = ({ body }: SeenRequest) => (JSON.parse(body) as { docs: { _id: string }[] }).docs.map(({ _id }) => _id)

function start(database: Database, onWritten: (ids: readonly string[]) => void = () => undefined) {
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  const written: string[][] = []
  const warn = vi.fn()
  const writer = new EventWriter({
    ...{ database, clock: systemClock, random: () => 0.1, signal: stopping.signal },
    log: pino({ level: 'warn' }, { write: warn }),
    onMissing: async () => void (await database.create()),
    plan: (ids) =>
      Promise.resolve({
        steps: [ids],
        onWritten: () => {
          written.push([...ids])
          onWritten(ids)
        },
      }),
  })
  return { writer, written, warn }
}

async function setUp() {
  const db = await freshDb('global-changes')
  const proxy = await startFaultyProxy()
  return { db, proxy, ...start(createTestCouch({ url: proxy.url }).db(db.name)) }
}

const generationOf = async (db: Database, id: string) => parseInt((await db.get(id))._rev)

test('each flush writes revisions without a body, in one request once the revisions are known', async () => {
  const { db, proxy, writer, written } = await setUp()
  const ids = ['created:a', 'updated:a', 'updated:b']
  const requests = () => proxy.requests.filter(({ path }) => path.startsWith(`/${db.name}/`))
  for (let flush = 1; flush <= 3; flush++) {
    const before = requests().length
    writer.add(ids)
    await writer.settled()
    expect(requests().length - before).toBe(flush === 1 ? 2 : 1)
    for (const id of ids)
      expect(await db.get(id)).toEqual({ _id: id, _rev: expect.stringMatching(`^${flush}-`) as string })
  }
  expect(written).toEqual([ids, ids, ids])
  expect(writer.counts).toEqual({ written: 9, requests: 4, conflicts: 0 })
})

test('a failed write is kept, logged once, and repeated with later events', async () => {
  const { db, proxy, writer, written, warn } = await setUp()
  proxy.plan((request) => (isBulk(request) ? refuse(500) : undefined))
  writer.add(['updated:a'])
  await eventually(() => expect(proxy.requests.filter(isBulk).length).toBeGreaterThan(2))
  writer.add(['updated:b', 'updated:a'])
  expect(writer.pending).toBeGreaterThan(0)
  proxy.plan(() => undefined)
  await writer.settled()
  expect(written).toHaveLength(1)
  expect(new Set(idsIn(proxy.requests.filter(isBulk).at(-1)!))).toEqual(new Set(['updated:a', 'updated:b']))
  expect(await generationOf(db, 'updated:a')).toBe(1)
  expect(warn).toHaveBeenCalledOnce()
})

test('a write with a lost answer is repeated once', async () => {
  const { db, proxy, writer } = await setUp()
  proxy.next(cutAfterUpstream, isBulk)
  writer.add(['updated:a'])
  await writer.settled()
  expect(await generationOf(db, 'updated:a')).toBe(2)
})

test('several writers of the same events cause no conflict and lose no event', async () => {
  const db = await freshDb('global-changes')
  const writers = [start(db), start(db), start(db)]
  const ids = Array.from({ length: 20 }, (_, i) => `updated:db${i}`)
  for (let round = 1; round <= 5; round++) {
    for (const { writer } of writers) writer.add(ids)
    for (const { writer } of writers) await writer.settled()
    for (const { _rev, _conflicts } of await db.getMany(ids)) {
      expect(_conflicts).toBeUndefined()
      expect(parseInt(_rev)).toBeGreaterThanOrEqual(round)
    }
  }
})

test('an event document is written over changes and deletions of other clients', async () => {
  const { db, writer } = await setUp()
  writer.add(['updated:a', 'updated:b'])
  await writer.settled()
  await db.remove('updated:a', (await db.get('updated:a'))._rev)
  await db.put({ ...(await db.get('updated:b')), note: 'by hand' })
  writer.add(['updated:a', 'updated:b'])
  await writer.settled()
  expect(await db.get('updated:b')).toEqual({ _id: 'updated:b', _rev: expect.stringMatching(/^3-/) as string })
  expect(await db.get('updated:a')).not.toHaveProperty('note')
})

test('a missing database is created, also when it is deleted meanwhile', async () => {
  const couch = createTestCouch()
  const { name } = await freshDb('global-changes')
  await couch.request({ method: 'DELETE', db: name })
  const db = couch.db(name)
  const { writer } = start(db)
  for (let round = 0; round < 2; round++) {
    writer.add(['updated:a'])
    await writer.settled()
    expect(await generationOf(db, 'updated:a')).toBe(1)
    if (round === 0) await couch.request({ method: 'DELETE', db: name })
  }
})

test('a forgotten event is not written, even after a failed write', async () => {
  const { db, proxy, writer, written } = await setUp()
  proxy.next(async (exchange) => {
    writer.clear()
    await refuse(500)(exchange)
  }, isBulk)
  writer.add(['updated:a'])
  await writer.settled()
  expect([written, await db.find('updated:a')]).toEqual([[], undefined])
  writer.add(['updated:b'])
  await writer.settled()
  expect(written).toEqual([['updated:b']])
})

test('an event that arrives as a write ends is written, too', async () => {
  const db = await freshDb('global-changes')
  const { writer } = start(db, ([id]) => {
    if (id === 'updated:a') queueMicrotask(() => writer.add(['updated:b']))
  })
  writer.add(['updated:a'])
  await eventually(async () => expect(await generationOf(db, 'updated:b')).toBe(1))
})

test('more than a thousand events take several requests', async () => {
  const { proxy, writer } = await setUp()
  writer.add(Array.from({ length: 2500 }, (_, i) => `updated:db${i}`))
  await writer.settled()
  expect(proxy.requests.filter(isBulk).map((request) => idsIn(request).length)).toEqual([1000, 1000, 500])
})
