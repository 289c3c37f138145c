import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { Semaphore } from '../../sidecar/core/semaphore.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { eventually } from '../support/eventually.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { pass, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

test('a stop saves the result of a handler that ends within the grace period', async () => {
  const db = await freshDb('stop')
  const [began, go] = [createLatch(), createLatch()]
  const rig = await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      began.open()
      await go.opened
      return { ...doc, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await began.opened
  const stopped = rig.stop()
  go.open()
  await stopped
  expect(await stateOf(db, 'o')).toBe('invoiced')
})

const isClaim = ({ path, body }: SeenRequest) => path.endsWith('/_bulk_docs') && body.includes('"claim"')

const hang = (onLost: 'park' | 'retry', began: () => void) => (control: Control) =>
  control.unsafe('order', 'paid', () => (began(), new Promise<never>(() => undefined)), { onLost })

test.each([
  ['park', { parked: { reason: expect.any(String) as string } }],
  ['retry', { attempts: 1, retry_at: expect.any(String) as string }],
] as const)(
  'a document whose handler does not end within the grace period follows onLost %s',
  async (onLost, expected) => {
    const db = await freshDb('stop')
    const began = createLatch()
    const rig = await startRig(
      db,
      hang(onLost, () => began.open()),
      { graceMs: 200 },
    )
    await db.put({ _id: 'o', type: 'order', state: 'paid' })
    await began.opened
    await rig.stop()
    expect(docstateIn(await db.get('o'))).toMatchObject(expected)
  },
)

test('a stop releases waiting documents unchanged, and another worker takes them at once', async () => {
  const db = await freshDb('stop')
  const began = createLatch()
  const first = await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', () => (began.open(), new Promise<never>(() => undefined)), { concurrency: 1 }),
    { graceMs: 200, leaseMs: 60_000 },
  )
  const docs = Array.from({ length: 20 }, (_, i) => JSON.stringify({ _id: `o${i}`, type: 'order', state: 'paid' }))
  await db.bulk(docs)
  await began.opened
  await first.stop()
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'invoiced' })),
  )
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 3 })
    expect(rows.map(({ key, value }) => [key, value])).toEqual([
      [['order', 'invoiced', 'ready'], 19],
      [['order', 'paid', 'parked'], 1],
    ])
  })
})

test('a stop cancels a claim that waits to be sent', async () => {
  const db = await freshDb('stop')
  const turns = new Semaphore(() => 1)
  await turns.enter() // occupied by another database
  const handled: string[] = []
  const rig = await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', (doc) => {
        handled.push(doc._id)
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
    { turns },
  )
  const before = await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(() => expect(rig.engine.health().inFlight).toBe(1))
  const stopped = rig.stop()
  await new Promise(setImmediate)
  turns.leave()
  await stopped
  expect((await db.get('o'))._rev).toBe(before)
  expect(handled).toEqual([])
})

test('a stop looks up a claim without an answer and releases it', async () => {
  const db = await freshDb('stop')
  const proxy = await startFaultyProxy()
  const [couch, turns] = [createTestCouch({ url: proxy.url }), new Semaphore(() => 1)]
  const read = createLatch()
  let late = ''
  proxy.next((exchange) => {
    late = exchange.request.body
    exchange.cut()
  }, isClaim)
  proxy.next(
    (exchange) => {
      turns.take(() => read.open()) // takes the turn after this request, so that the next request waits
      return pass(exchange)
    },
    ({ query }) => query.has('open_revs'),
  )
  const rig = await startRig(
    couch.db(db.name),
    (control) => control.unsafe('order', 'paid', () => Promise.reject(new Error('it has stopped'))),
    { turns },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await read.opened
  const stopped = rig.stop()
  await createTestCouch().request({ method: 'POST', db: db.name, path: '_bulk_docs', json: late })
  expect(docstateIn(await db.get('o'))).toHaveProperty('claim')
  turns.leave()
  await stopped
  const doc = await db.get('o')
  expect(doc).toMatchObject({ state: 'paid' })
  expect(docstateIn(doc)).toEqual({ state: 'paid', entry: expect.stringMatching(/^1-/) as string })
})

test('a handler sees its signal abort when the grace period is over', async () => {
  const db = await freshDb('stop')
  const began = createLatch()
  let aborted = false
  const rig = await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', (_doc, ctx) => {
        ctx.signal.addEventListener('abort', () => (aborted = true))
        began.open()
        return new Promise<never>(() => undefined)
      }),
    { graceMs: 100 },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await began.opened
  await rig.stop()
  expect(aborted).toBe(true)
})

test('an engine started twice throws', async () => {
  const db = await freshDb('stop')
  const rig = await startRig(db, () => undefined)
  await expect(rig.engine.run(new AbortController().signal)).rejects.toThrow(/twice/)
})
