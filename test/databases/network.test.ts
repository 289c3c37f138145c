/** Requests of visited databases: grouped writes, and recovery from network faults. */
import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { seeded } from '../chaos/seeded.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { cut, cutAfterUpstream, refuse, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { thoroughTest } from '../support/thorough.ts'
import { createPrefix, make, order, startVisits, type RigOptions } from './rig.ts'

const SOON = [300, 300] as const
/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const
const LEASE_MS = 60_000
/** After several lost answers, an attempt waits for a growing delay or for the end of its lease. */
const LONG = { within: LEASE_MS * 2 }

const isBulk = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')

const unsafely: NonNullable<RigOptions['register']> = (control, handled) =>
  control.unsafe('order', 'paid', async (doc, { key }) => {
    handled.push(key)
    return { ...doc, state: 'invoiced' }
  })

/** Creates `databases` databases with `orders` orders each. */
async function makeWithOrders(prefix: string, databases: number, orders: number): Promise<Database[]> {
  const names = Array.from({ length: databases }, (_, i) => `${prefix}-db-${i}`)
  const made = await make({ couch: createTestCouch() }, ...names)
  for (const database of made) await putOrders(database, 0, orders)
  return made
}

const putOrders = (database: Database, from: number, count: number) =>
  database.bulk(Array.from({ length: count }, (_, i) => JSON.stringify(order(`o${from + i}`))))

/** Waits until all orders are invoiced and ready, without a trace of retries. */
const allInvoiced = (databases: readonly Database[], count: number) =>
  eventually(
    async () => {
      for (const database of databases) {
        const { rows } = await viewOf(database, 'docstate', 'by_state', { group_level: 3 })
        expect(rows).toEqual([{ key: ['order', 'invoiced', 'ready'], value: count }])
      }
    },
    { within: 40_000 },
  )

/** Starts a worker that reaches `count` databases with `orders` orders each through a proxy. */
async function start(count: number, orders: number, lookAgainMs: NonNullable<RigOptions['lookAgainMs']>) {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const databases = await makeWithOrders(prefix, count, orders)
  const rig = startVisits(prefix, { by: proxy.url, register: unsafely, lookAgainMs, leaseMs: LEASE_MS })
  return { proxy, databases, rig }
}

test('claims and saves travel in groups, also for documents that arrive during other requests', async () => {
  const { proxy, databases, rig } = await start(3, 300, HARDLY)
  await eventually(() => expect(rig.handled.length).toBeGreaterThan(100))
  for (const database of databases) await putOrders(database, 300, 100)
  for (const { name } of databases) rig.report(name)
  await allInvoiced(databases, 400)
  expect(rig.handled).toHaveLength(1200)
  expect(proxy.requests.filter(isBulk).length).toBeLessThan(240) // two writes per order, in groups of at least ten
})

test('no document is lost or handled twice on a network that loses many requests and answers', async () => {
  const { proxy, databases, rig } = await start(4, 1, SOON)
  // The design documents are installed first, because every fault restarts their installation.
  await allInvoiced(databases, 1)
  const faults = [cutAfterUpstream, cut, refuse(503)]
  const random = seeded(6)
  let [writes, met] = [0, 0]
  proxy.plan((request) => {
    if (isBulk(request)) writes += 1
    // Random, because a fixed rhythm could hit the same request of each visit.
    const isMet = random() < (isBulk(request) ? 1 / 2 : 1 / 4)
    return isMet ? faults[met++ % 3] : undefined
  })
  for (let i = 1; i < 7; i++) {
    for (const database of databases) await putOrders(database, i, 1)
    await eventually(() => expect(rig.handled).toHaveLength(4 + 4 * i), LONG)
  }
  await allInvoiced(databases, 7)
  expect(new Set(rig.handled).size).toBe(28)
  expect(rig.handled).toHaveLength(28)
  expect(writes).toBeGreaterThan(48) // 24 orders need 48 writes without a fault
}, 600_000)

thoroughTest('visits wait during a network outage and continue after it', async () => {
  const { proxy, databases, rig } = await start(6, 20, SOON)
  await eventually(() => expect(rig.handled.length).toBeGreaterThan(10))
  await proxy.down()
  for (const database of databases) await putOrders(database, 20, 20)
  for (const { name } of databases) rig.report(name)
  const troubles = () => [...rig.engines.values()].filter((engine) => engine.health().trouble === 'unreachable')
  await eventually(() => expect(troubles().length).toBeGreaterThan(0))
  await proxy.up()
  await allInvoiced(databases, 40)
  expect(rig.handled).toHaveLength(240)
  expect(new Set(rig.handled).size).toBe(240)
})
