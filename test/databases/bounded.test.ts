/** What it costs does not grow with the number of databases in which something happens. */
import { expect, test } from 'vitest'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'
import { createLatch } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, startFaultyProxy } from '../support/faulty-proxy.ts'
import { countUnderWay } from '../support/under-way.ts'
import { createPrefix, make, order, startVisits, type RigOptions } from './rig.ts'

/** Only events bring a visit, after the first look. */
const HARDLY = [600_000, 600_000] as const

/** So many databases with one order each, or more. */
async function makeWithOrders(prefix: string, count: number, orders: readonly object[] = [order('o')]) {
  const names = Array.from({ length: count }, (_, i) => `${prefix}-db-${i}`)
  const databases = await make({ couch: createTestCouch() }, ...names)
  const docs = orders.map((doc) => JSON.stringify(doc))
  for (const database of databases) await database.bulk(docs)
  return databases
}

const waiting =
  (until: Promise<void>): NonNullable<RigOptions['register']> =>
  (control, handled) =>
    control.safe('order', 'paid', async (doc) => {
      handled.push(doc._id)
      await until
      return { ...doc, state: 'invoiced' }
    })

/** It has happened, and does not within a moment go beyond that. */
async function staysAt(assertion: () => void, beyond: () => void): Promise<void> {
  await eventually(assertion)
  await expect(eventually(beyond, { within: 1000 })).rejects.toThrow()
}

test('however many databases have changes, so many as the setting says are read at once', async () => {
  const prefix = createPrefix()
  const databases = await makeWithOrders(prefix, 15)
  const [proxy, reading] = [await startFaultyProxy(), countUnderWay(delay(50))]
  proxy.plan(({ path }) =>
    path.startsWith(`/${prefix}-db-`) && path.endsWith('/_changes') ? reading.fault : undefined,
  )
  const rig = startVisits(prefix, { by: proxy.url, reads: 3, lookAgainMs: HARDLY })
  await eventually(() => expect(rig.handled).toHaveLength(15)) // those that a look has found
  for (const database of databases) await database.put(order('again'))
  for (const { name } of databases) rig.tell(name)
  await eventually(() => expect(rig.handled).toHaveLength(30)) // those of whom somebody has told
  expect(reading.count).toBeGreaterThanOrEqual(30)
  expect(reading.most).toBe(3)
}, 60_000)

test('however many databases wait for handlers, so many visits as the bound says are open', async () => {
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

test('documents in flight are bounded by the bytes of all visits together', async () => {
  const prefix = createPrefix()
  const padding = 'x'.repeat(10_000)
  const orders = Array.from({ length: 40 }, (_, i) => order(`o${i}`, { padding }))
  await makeWithOrders(prefix, 8, orders)
  const [go, byteBudget] = [createLatch(), createByteBudget(1_000_000)]
  const rig = startVisits(prefix, { byteBudget: byteBudget, lookAgainMs: HARDLY, register: waiting(go.opened) })
  const inFlight = () => [...rig.engines.values()].reduce((sum, engine) => sum + engine.health().inFlight, 0)
  await staysAt(
    () => expect(inFlight()).toBeGreaterThan(50),
    () => expect(inFlight()).toBeGreaterThan(1_000_000 / 10_000),
  )
  await eventually(() => expect(rig.visited().open).toBe(8)) // each has its share
  go.open()
  await eventually(() => expect(rig.handled).toHaveLength(320))
  await eventually(() => expect(byteBudget.used).toBe(0))
}, 60_000)
