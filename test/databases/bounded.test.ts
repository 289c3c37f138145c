/** Open visits, requests and bytes stay bounded, however many databases have changes. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { ownLimits, type HandlerLimits } from '../../sidecar/docstate/handler-limits.ts'
import { createLatch } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, startFaultyProxy } from '../support/faulty-proxy.ts'
import { countUnderWay } from '../support/under-way.ts'
import { createPrefix, make, order, startVisits, type RigOptions } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

/** Creates `count` databases. Each one has one order by default. */
async function makeWithOrders(prefix: string, count: number, orders: readonly object[] = [order('o')]) {
  const names = Array.from({ length: count }, (_, i) => `${prefix}-db-${i}`)
  const databases = await make({ couch: createTestCouch() }, ...names)
  const docs = orders.map((doc) => JSON.stringify(doc))
  for (const database of databases) await database.bulk(docs)
  return databases
}

/** The limits are shared by all databases, as in one process. */
async function limitsFor(prefix: string): Promise<HandlerLimits> {
  const [control] = await make({ couch: createTestCouch() }, `${prefix}-control`)
  const ending = new AbortController()
  onTestFinished(() => ending.abort(new Error('the test is over')))
  const log = pino({ level: 'silent' })
  return ownLimits({ control: control!, clock: systemClock, random: Math.random, log, signal: ending.signal })
}

const waiting =
  (until: Promise<void>): NonNullable<RigOptions['register']> =>
  (control, handled) =>
    control.safe('order', 'paid', async (doc) => {
      handled.push(doc._id)
      await until
      return { ...doc, state: 'invoiced' }
    })

/** Waits for the first assertion, then checks for a second that the second one stays false. */
async function staysAt(assertion: () => void, beyond: () => void): Promise<void> {
  await eventually(assertion)
  await expect(eventually(beyond, { within: 1000 })).rejects.toThrow()
}

test('visits read no more databases at once than the setting allows', async () => {
  const prefix = createPrefix()
  const databases = await makeWithOrders(prefix, 15)
  const [proxy, reading] = [await startFaultyProxy(), countUnderWay(delay(50))]
  proxy.plan(({ path }) =>
    path.startsWith(`/${prefix}-db-`) && path.endsWith('/_changes') ? reading.fault : undefined,
  )
  const rig = startVisits(prefix, { by: proxy.url, reads: 3, lookAgainMs: HARDLY })
  await eventually(() => expect(rig.handled).toHaveLength(15)) // databases that the listing found
  for (const database of databases) await database.put(order('again'))
  for (const { name } of databases) rig.report(name)
  await eventually(() => expect(rig.handled).toHaveLength(30)) // databases that an event named
  expect(reading.count).toBeGreaterThanOrEqual(30)
  expect(reading.most).toBe(3)
})

test('the number of open visits stays at its limit while databases wait for handlers', async () => {
  const prefix = createPrefix()
  await makeWithOrders(prefix, 8)
  const go = createLatch()
  const rig = startVisits(prefix, { mostOpen: 3, lookAgainMs: HARDLY, register: waiting(go.opened) })
  await staysAt(
    () => expect(rig.visited()).toMatchObject({ databases: 8, open: 3, waiting: 5 }),
    () => expect(rig.visited().open).toBeGreaterThan(3),
  )
  await eventually(() => expect(rig.handled).toHaveLength(3))
  go.open()
  await eventually(() => expect(rig.handled).toHaveLength(8))
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 8, open: 0, waiting: 0 }))
})

test.each([
  ['other documents run', { concurrency: 1 }],
  ['the handler has reached its rate limit', { limit: { count: 1, per: '1d' } }],
] as const)('a visit whose documents wait because %s makes room for other visits', async (_, options) => {
  const prefix = createPrefix()
  await makeWithOrders(prefix, 6)
  const go = createLatch()
  const notes: string[] = []
  const register: NonNullable<RigOptions['register']> = (control, handled) => {
    const invoice = async (doc: StoredDoc) => {
      handled.push(doc._id)
      if ('concurrency' in options) await go.opened
      return { ...doc, state: 'invoiced' }
    }
    control.safe('order', 'paid', invoice, options)
    control.safe('note', 'new', (doc) => {
      notes.push(doc._id)
      return Promise.resolve({ ...doc, state: 'read' })
    })
  }
  const limits = await limitsFor(prefix)
  const rig = startVisits(prefix, { mostOpen: 2, heldMs: 200, lookAgainMs: HARDLY, register, limits })
  const waiting = 'concurrency' in options ? 4 : 3 // the database with the handled order is idle
  await eventually(() => expect(rig.handled).toHaveLength(1))
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 6, open: 2, waiting }))
  const [database] = await make({ couch: createTestCouch() }, `${prefix}-db-note`)
  await database!.put({ _id: 'n', type: 'note', state: 'new' })
  rig.report(database!.name)
  await eventually(() => expect(notes).toEqual(['n']))
  expect(rig.handled, 'no other may run').toHaveLength(1)
  if (!('concurrency' in options)) return
  go.open()
  await eventually(() => expect(rig.handled).toHaveLength(6))
  await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
})

test('the byte budget bounds the documents in flight of all visits', async () => {
  const prefix = createPrefix()
  const padding = 'x'.repeat(10_000)
  const orders = Array.from({ length: 40 }, (_, i) => order(`o${i}`, { padding }))
  await makeWithOrders(prefix, 8, orders)
  const [go, byteBudget] = [createLatch(), createByteBudget(1_000_000)]
  const rig = startVisits(prefix, { byteBudget, lookAgainMs: HARDLY, register: waiting(go.opened) })
  const inFlight = () => [...rig.engines.values()].reduce((sum, engine) => sum + engine.health().inFlight, 0)
  await staysAt(
    () => expect(inFlight()).toBeGreaterThan(50),
    () => expect(inFlight()).toBeGreaterThan(1_000_000 / 10_000),
  )
  await eventually(() => expect(rig.visited().open).toBe(8)) // each visit has its share of the byte budget
  go.open()
  await eventually(() => expect(rig.handled).toHaveLength(320))
  await eventually(() => expect(byteBudget.used).toBe(0))
})
