/** Workers at different nodes of a cluster that all visit the same databases, without partitioning. */
import { expect, onTestFinished, test } from 'vitest'
import { isLeftBy, untilHandled, untilSettled, watchClaims } from '../docstate/claims/watched-claims.ts'
import { installDocstate } from '../docstate/install.ts'
import { createTestCouch, needs, uniqueName } from '../support/couchdb.ts'
import { sharedCluster, type CouchCluster } from '../support/couchdb-cluster.ts'
import { eventually } from '../support/eventually.ts'
import { amount, thoroughTest } from '../support/thorough.ts'
import { make, order, startVisits, type RigOptions } from './rig.ts'

const SOON = [300, 300] as const
/** A small batch makes all workers claim the same documents at the same time. */
const TOGETHER = 10
const CONTESTED = amount(15, 150)
/** The test needs at least this many claims below the quorum. */
const BELOW_QUORUM = amount(2, 10)
const timeout = 240_000

/** Starts a worker at each node for two databases of one glob. The test kills the node of the worker `killed`. */
async function startRace(cluster: CouchCluster, killed?: number) {
  const prefix = uniqueName('visited')
  const admins = cluster.nodes.map(({ url }) => createTestCouch({ url }))
  const databases = await make({ couch: admins[0]! }, `${prefix}-db-a`, `${prefix}-db-b`)
  for (const database of databases) await installDocstate(database, {})
  const effects = new Map<string, number>()
  const register: RigOptions['register'] = (control) =>
    control.unsafe('order', 'paid', async (doc, { database }) => {
      const name = `${database}/${doc._id}`
      effects.set(name, (effects.get(name) ?? 0) + 1)
      return { ...doc, state: 'invoiced' }
    })
  const { watched, contested, accepted } = watchClaims()
  const rigs = admins.map((admin, i) => {
    const worker = `worker-${i}`
    const couch = { ...admin, db: (name: string) => watched(admin.db(name), worker) }
    return startVisits(prefix, {
      url: cluster.nodes[i]!.url,
      couch,
      worker,
      register,
      lookAgainMs: SOON,
    })
  })
  for (const rig of rigs) await eventually(() => expect(rig.visited()).toMatchObject({ databases: 2, open: 0 }))
  let count = 0

  /** Puts `more` documents into each database and sends an event to all workers. */
  async function put(more: number): Promise<void> {
    for (const until = count + more; count < until; count += TOGETHER) {
      const docs = Array.from({ length: TOGETHER }, (_, i) => JSON.stringify(order(`o${count + i}`)))
      for (const database of databases) {
        await database.bulk(docs)
        for (const rig of rigs) rig.report(database.name)
      }
    }
  }
  const isLeft = isLeftBy(killed)
  async function allRun(): Promise<void> {
    for (const db of databases) await untilHandled(db, count, (id) => effects.has(`${db.name}/${id}`), isLeft)
  }
  return {
    effects,
    put,
    allRun,
    async putUntilContested(): Promise<void> {
      while (contested() < CONTESTED || accepted() < BELOW_QUORUM) {
        expect(count, 'documents written, with too few contested claims').toBeLessThan(2000)
        await put(30)
        await allRun()
      }
    },
    async settled(): Promise<void> {
      for (const { name } of databases) await untilSettled(admins, name, count, { state: 'invoiced' }, isLeft)
      expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
    },
  }
}

test('workers at three nodes that all visit the same databases run each handler once', { timeout }, async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const race = await startRace(cluster)
  await race.putUntilContested()
  await race.settled()
})

thoroughTest(
  'workers that visit the same databases run each handler once while a node is killed and restarted',
  { timeout },
  async () => {
    needs('cluster')
    const cluster = await sharedCluster()
    const race = await startRace(cluster, 2)
    await race.put(100)
    await eventually(() => expect(race.effects.size).toBeGreaterThan(20))
    const node = cluster.nodes[2]!
    let back: Promise<void> | undefined
    const bringBack = () => (back ??= node.restart().then(() => cluster.whole()))
    onTestFinished(bringBack)
    await node.kill()
    await race.put(50)
    const last = () => [...race.effects.keys()].filter((name) => /\/o1[0-4]\d$/.test(name))
    await eventually(() => expect(last().length).toBeGreaterThan(10)) // the other nodes continue
    await bringBack()
    await race.putUntilContested()
    await race.settled()
  },
)
