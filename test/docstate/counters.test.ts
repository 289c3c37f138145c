/** The counters of an engine and the lag that it reports. */
import { expect, test } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { createTestCouch, freshDb, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, refuse, silence, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { replicate } from './conflicts/branches.ts'
import { createLatch, startRig, stateOf } from './rig.ts'

const paid = { type: 'order', state: 'paid' }
const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const isFeed = (request: SeenRequest) => request.path.endsWith('/_changes')
const invoice = (control: Control) =>
  control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
const putAll = (db: Database, count: number) =>
  db.bulk(Array.from({ length: count }, (_, n) => JSON.stringify({ _id: `o${n}`, ...paid })))

test('the counters list each handler from the start, with zero runs', async () => {
  const { engine } = await startRig(await freshDb('counts'), (control) => {
    invoice(control)
    control.safe('note', 'new', async (note) => ({ ...note, state: 'kept' }))
  })
  const handlers = [...engine.counts.handlers()]
  expect(handlers.map(({ type, state }) => `${type} ${state}`)).toEqual(['order paid', 'note new'])
  expect(handlers[0]!.counts.runs).toEqual({
    ...{ next: 0, nothing: 0, failed: 0, rejected: 0, 'claim-lost': 0, stopped: 0 },
  })
})

test('runs are counted by outcome and duration, and writes are counted by kind', async () => {
  const db = await freshDb('counts')
  const { engine } = await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (order, ctx) => {
        if (order._id === 'never') throw new Reject('no', 'never')
        if (order._id === 'later' && ctx.attempt < 3) throw new Error('not yet')
        return { ...order, state: 'invoiced' }
      },
      { backoff: { baseMs: 1, capMs: 1 } },
    ),
  )
  for (const _id of ['once', 'later', 'never']) await db.put({ _id, ...paid })
  await eventually(() => expect(engine.counts.of(paid).written).toEqual({ saved: 2, retry: 2, error: 1, parked: 0 }))
  const { runs, claims, took, running } = engine.counts.of(paid)
  expect(runs).toMatchObject({ next: 2, failed: 2, rejected: 1, nothing: 0 })
  expect(claims).toEqual({ stored: 5, accepted: 0, lost: 0, refused: 0 })
  expect(took.upTo().at(-1)!.count).toBe(5)
  expect(running).toBe(0)
  await eventually(() => expect(engine.counts.of(paid).inFlight).toBe(0))
  expect(engine.counts.writes).toMatchObject({ stored: 10, conflict: 0 })
})

test('the counters show running and waiting documents, and zero after the engine stops', async () => {
  const db = await freshDb('counts')
  const latch = createLatch()
  const counts = new Counters()
  const rig = await startRig(
    db,
    (control) =>
      control.safe('order', 'paid', async (order) => (await latch.opened, { ...order, state: 'invoiced' }), {
        concurrency: 2,
      }),
    { counts },
  )
  await putAll(db, 5)
  await eventually(() => expect(counts.of(paid)).toMatchObject({ running: 2, inFlight: 5 }))
  expect(rig.engine.lag().unsettled).toBe(5)
  const stopped = rig.stop()
  latch.open()
  await stopped
  expect(counts.of(paid)).toMatchObject({ running: 0, inFlight: 0 })
})

test('a claim lost to another worker is counted', async () => {
  const db = await freshDb('counts')
  const proxy = await startFaultyProxy()
  // The claims of the second worker are late, so that they lose.
  proxy.plan((request) => (isBulk(request) ? delay(300) : undefined))
  const { engine: first } = await startRig(db, invoice, { worker: 'first' })
  const { engine: second } = await startRig(createTestCouch({ url: proxy.url }).db(db.name), invoice)
  await eventually(() => expect([first, second].map((engine) => engine.lag().behindMs)).toEqual([0, 0]))
  await putAll(db, 20)
  await eventually(() => expect(second.counts.of(paid).claims.lost).toBeGreaterThan(0))
  await eventually(() => expect(second.counts.contended).toBe(second.counts.of(paid).claims.lost))
  const stored = () => second.counts.of(paid).claims.stored + first.counts.of(paid).claims.stored
  await eventually(() => expect(stored()).toBe(20)) // each document is claimed once
})

test('the document of a dead worker is counted as inherited and as parked', async () => {
  const db = await freshDb('counts')
  const claim = { worker: 'dead', token: 'x/1', at: new Date(0).toISOString(), lease_ms: 300 }
  await db.put({ ...paid, _id: 'o', docstate: { state: 'paid', entry: '1-0', claim } })
  const { engine } = await startRig(db, invoice)
  await eventually(() => expect(engine.counts.of(paid)).toMatchObject({ inherited: 1, written: { parked: 1 } }))
})

test('a resolved conflict is counted', async () => {
  const db = await freshDb('counts')
  const { engine } = await startRig(db, invoice)
  const first = await db.put({ ...paid, _id: 'o' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await replicate(db, first, 1, { ...paid, _id: 'o', note: 'device' })
  await eventually(() => expect(engine.counts.conflicts).toEqual({ resolved: 1, stuck: 0 }))
})

test('a feed read to its end has no lag, and an unreadable feed has a growing lag and counted failures', async () => {
  const db = await freshDb('counts')
  const proxy = await startFaultyProxy()
  const { engine } = await startRig(createTestCouch({ url: proxy.url }).db(db.name), invoice, { heartbeatMs: 1000 })
  await eventually(() => expect(engine.lag()).toEqual({ unread: 0, unsettled: 0, behindMs: 0, slowHandlers: 0 }))
  proxy.plan((request) => (isFeed(request) ? refuse(503) : undefined))
  proxy.dropConnections()
  await eventually(() => expect(engine.counts.feed.broken).toBeGreaterThan(1))
  const { behindMs } = engine.lag()
  expect(behindMs).toBeGreaterThan(0)
  await eventually(() => expect(engine.lag().behindMs).toBeGreaterThan(behindMs))
  proxy.plan(() => undefined)
  await putAll(db, 3)
  await eventually(() => expect(engine.lag().behindMs).toBe(0))
  await eventually(() => expect(engine.counts.of(paid).runs.next).toBe(3))
  expect(engine.counts.changes).toBeGreaterThanOrEqual(3)
})

test('the lag includes the number of unread changes that the server reports', async () => {
  needs('feed parameters')
  const db = await freshDb('counts')
  const proxy = await startFaultyProxy()
  await db.bulk(Array.from({ length: 2500 }, (_, n) => JSON.stringify({ _id: `n${n}` })))
  let feeds = 0
  proxy.plan((request) => (isFeed(request) && ++feeds === 2 ? silence : undefined))
  const { engine } = await startRig(createTestCouch({ url: proxy.url }).db(db.name), invoice, { heartbeatMs: 1000 })
  await eventually(() => expect(engine.lag().unread).toBeGreaterThanOrEqual(1500))
  expect(engine.lag().behindMs).toBeGreaterThan(0)
  // Fewer changes prove nothing: a pause of the server looks like the end of the feed.
  await eventually(() => expect(engine.counts.changes).toBeGreaterThan(2500))
  await eventually(() => expect(engine.lag()).toMatchObject({ unread: 0, behindMs: 0 }))
})

test('engines with shared counters are counted together', async () => {
  const counts = new Counters()
  for (const db of [await freshDb('counts'), await freshDb('counts')]) {
    await startRig(db, invoice, { counts })
    await putAll(db, 2)
  }
  await eventually(() => expect(counts.of(paid).runs.next).toBe(4))
  expect([...counts.handlers()]).toHaveLength(1)
})
