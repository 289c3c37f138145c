/** Documents that change or get conflicting branches while they wait or during a save. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type Fault, type SeenRequest } from '../support/faulty-proxy.ts'
import { replicate } from './conflicts/branches.ts'
import { createLatch, startRig, stateOf } from './rig.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const paid = { type: 'order', state: 'paid' }
const machine = { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar', cancelled: 'client' } } as const
const machines = { order: { paid: machine, invoiced: {}, cancelled: {} } } as const

/** Starts a handler with concurrency 1 that the first document blocks. */
async function setUp() {
  const db = await freshDb('outdated')
  const proxy = await startFaultyProxy()
  const go = createLatch()
  const began: string[] = []
  const { engine } = await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.unsafe(
        'order',
        'paid',
        async (doc) => {
          began.push(doc._id)
          if (doc._id !== 'o') await go.opened
          return { ...doc, state: 'invoiced' }
        },
        { concurrency: 1 },
      ),
    { machines },
  )
  for (const _id of ['a', 'b', 'c']) await db.put({ ...paid, _id })
  await eventually(() => expect(began).toHaveLength(1))
  /** Makes a change, and waits until the feed has reported it. */
  async function reported<T>(change: () => Promise<T>): Promise<T> {
    const before = engine.counts.changes
    const changed = await change()
    await eventually(() => expect(engine.counts.changes).toBeGreaterThan(before))
    await sleep(300) // a row that waits for its turn is dispatched
    return changed
  }
  return { db, proxy, go, began, reported }
}

test('a waiting document with a known conflict does not start', async () => {
  const { db, go, began, reported } = await setUp()
  const first = await db.put({ ...paid, _id: 'o' })
  await reported(() => db.put({ ...paid, _id: 'o', _rev: first, name: 'Ann' }))
  await reported(() => replicate(db, first, 3, { ...paid, _id: 'o', state: 'cancelled' }))
  go.open()
  await eventually(async () => expect(await db.get('o', { conflicts: true })).not.toHaveProperty('_conflicts'))
  await eventually(async () => expect(await stateOf(db, 'c')).toBe('invoiced'))
  expect(began).not.toContain('o')
  expect(await stateOf(db, 'o')).toBe('cancelled')
})

test('a waiting document that leaves its state is not claimed', async () => {
  const { db, proxy, go, began, reported } = await setUp()
  const _rev = await reported(() => db.put({ ...paid, _id: 'o' }))
  await reported(() => db.put({ ...paid, _id: 'o', state: 'cancelled', _rev }))
  go.open()
  await eventually(async () => expect(await stateOf(db, 'c')).toBe('invoiced'))
  await sleep(300)
  expect(began).not.toContain('o')
  expect(proxy.requests.filter((request) => isBulk(request) && request.body.includes('"o"'))).toEqual([])
})

/** Delays the answer until after the feed's row. */
const answeredLate: Fault = async (exchange) => {
  const answer = await exchange.forward()
  const chunks: Uint8Array[] = []
  for await (const chunk of answer.body) chunks.push(chunk)
  await sleep(700)
  await exchange.send({ ...answer, body: Readable.from(chunks) })
  exchange.end()
}

test('the next handler does not start while the saved document has a conflicting branch', async () => {
  const db = await freshDb('outdated')
  const proxy = await startFaultyProxy()
  const seen: unknown[] = []
  let first = ''
  await startRig(createTestCouch({ url: proxy.url }).db(db.name), (control) => {
    control.unsafe('order', 'paid', async (doc) => {
      await replicate(db, first, 1, { ...paid, _id: 'o', note: 'device' }, '0')
      await sleep(300)
      proxy.next(answeredLate, isBulk)
      return { ...doc, state: 'invoiced' }
    })
    control.unsafe('order', 'invoiced', async (doc) => {
      seen.push((await db.get('o', { conflicts: true }))._conflicts)
      return { ...doc, state: 'done' }
    })
  })
  first = await db.put({ ...paid, _id: 'o' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('done'))
  expect(seen).toEqual([undefined])
})
