/** What goes over the network for databases of a glob: in groups, and through whatever happens to it. */
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
/** Only events bring a visit, after the first look. */
const HARDLY = [600_000, 600_000] as const
const LEASE_MS = 60_000
/** What several answers in a row were lost for is tried again later and later, or found when its lease is over. */
const LONG = { within: LEASE_MS * 2 }

const isBulk = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')

const unsafely: NonNullable<RigOptions['register']> = (control, handled) =>
  control.unsafe('order', 'paid', async (doc, { key }) => {
    handled.push(key)
    return { ...doc, state: 'invoiced' }
  })

/** So many databases, with so many orders in each. */
async function makeWithOrders(prefix: string, databases: number, orders: number): Promise<Database[]> {
  const names = Array.from({ length: databases }, (_, i) => `${prefix}-db-${i}`)
  const made = await make({ couch: createTestCouch() }, ...names)
  for (const database of made) await putOrders(database, 0, orders)
  return made
}

const putOrders = (database: Database, from: number, count: number) =>
  database.bulk(Array.from({ length: count }, (_, i) => JSON.stringify(order(`o${from + i}`))))

/** All of them are done, with nothing left in them of how that went. */
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

/** A worker that reaches so many databases, with so many orders in each, through a proxy. */
async function start(count: number, orders: number, lookAgainMs: NonNullable<RigOptions['lookAgainMs']>) {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const databases = await makeWithOrders(prefix, count, orders)
  const rig = startVisits(prefix, { by: proxy.url, register: unsafely, lookAgainMs, leaseMs: LEASE_MS })
  return { proxy, databases, rig }
}

test('claims and saves travel in groups, and so do those of what comes while others are under way', async () => {
  const { proxy, databases, rig } = await start(3, 300, HARDLY)
  await eventually(() => expect(rig.handled.length).toBeGreaterThan(100))
  for (const database of databases) await putOrders(database, 300, 100)
  for (const { name } of databases) rig.tell(name)
  await allInvoiced(databases, 400)
  expect(rig.handled).toHaveLength(1200)
  expect(proxy.requests.filter(isBulk).length).toBeLessThan(240) // two writes each, at least ten of them together
})

test('nothing is lost, and nothing done twice, on a network that loses many requests and answers', async () => {
  const { proxy, databases, rig } = await start(4, 1, SOON)
  await allInvoiced(databases, 1) // their design documents are there: what brings them begins anew at each error
  const faults = [cutAfterUpstream, cut, refuse(503)]
  const random = seeded(6)
  let [writes, met] = [0, 0]
  proxy.plan((request) => {
    if (isBulk(request)) writes += 1
    const isMet = random() < (isBulk(request) ? 1 / 2 : 1 / 4) // by turns it could be the same one of each visit
    return isMet ? faults[met++ % 3] : undefined
  })
  for (let i = 1; i < 7; i++) {
    for (const database of databases) await putOrders(database, i, 1)
    await eventually(() => expect(rig.handled).toHaveLength(4 + 4 * i), LONG)
  }
  await allInvoiced(databases, 7)
  expect(new Set(rig.handled).size).toBe(28)
  expect(rig.handled).toHaveLength(28)
  expect(writes).toBeGreaterThan(48) // each claim and each save would have been one
}, 600_000)

thoroughTest(
  'a network that is gone for a while is waited for, and everything goes on when it is back',
  async () => {
    const { proxy, databases, rig } = await start(6, 20, SOON)
    await eventually(() => expect(rig.handled.length).toBeGreaterThan(10))
    await proxy.down()
    for (const database of databases) await putOrders(database, 20, 20)
    for (const { name } of databases) rig.tell(name)
    const troubles = () => [...rig.engines.values()].filter((engine) => engine.health().trouble === 'unreachable')
    await eventually(() => expect(troubles().length).toBeGreaterThan(0))
    await proxy.up()
    await allInvoiced(databases, 40)
    expect(rig.handled).toHaveLength(240)
    expect(new Set(rig.handled).size).toBe(240)
  },
  90_000,
)
