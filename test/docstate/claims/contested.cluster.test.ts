import { expect, onTestFinished, test } from 'vitest'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { needs } from '../../support/couchdb.ts'
import { sharedCluster, type CouchCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { amount, thoroughTest } from '../../support/thorough.ts'
import { startRace, type Race } from './cluster-race.ts'

/** Counts the runs of the handler for each document. */
function countEffects() {
  const effects = new Map<string, number>()
  const register = (control: Control) =>
    control.unsafe('order', 'paid', async (doc) => {
      effects.set(doc._id, (effects.get(doc._id) ?? 0) + 1)
      return { ...doc, state: 'invoiced' }
    })
  return { effects, register }
}

/** Kills one node. Returns a function that restarts it, which also runs at the end of the test. */
async function killNode(cluster: CouchCluster): Promise<() => Promise<void>> {
  const node = cluster.nodes[2]!
  let back: Promise<void> | undefined
  const bringBack = () => (back ??= node.restart().then(() => cluster.whole()))
  onTestFinished(bringBack)
  await node.kill()
  return bringBack
}

/** Puts documents until enough claims were contested, and waits until all documents are handled. */
async function putUntilContested(race: Race, effects: Map<string, number>): Promise<void> {
  while (race.contested() < CONTESTED || race.accepted() < BELOW_QUORUM) {
    expect(race.count(), 'documents written, with too few contested claims').toBeLessThan(3000)
    await race.put(50)
    await race.allHandled(effects)
  }
  await race.allHandled(effects)
}

const CONTESTED = amount(20, 300)
/** The test needs at least this many claims below the quorum. */
const BELOW_QUORUM = amount(4, 30)
const MANY = amount(20, 200)
const timeout = 240_000

test('workers at three nodes that race for every document run each handler once', { timeout }, async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const { effects, register } = countEffects()
  const race = await startRace({ cluster, nodes: [0, 1, 2], register })
  await putUntilContested(race, effects)
  await race.settled({ state: 'invoiced' })
  expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
})

thoroughTest(
  'racing workers run each handler once while one of three nodes is down and after its restart',
  { timeout },
  async () => {
    needs('cluster')
    const cluster = await sharedCluster()
    const { effects, register } = countEffects()
    const bringBack = await killNode(cluster)
    const race = await startRace({ cluster, nodes: [0, 1, 0], register })
    await putUntilContested(race, effects)
    await bringBack()
    await race.settled({ state: 'invoiced' })
    expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
  },
)

test('racing workers run each handler once while a node is killed and restarted', { timeout }, async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const { effects, register } = countEffects()
  const race = await startRace({ cluster, nodes: [0, 1, 2], register, killed: 2 })
  await race.put(100)
  await eventually(() => expect(effects.size).toBeGreaterThan(20))
  const bringBack = await killNode(cluster)
  await race.put(60)
  const last = () => [...effects.keys()].filter((id) => /^o1[0-5]\d$/.test(id))
  await eventually(() => expect(last().length).toBeGreaterThan(10)) // the other nodes continue
  await bringBack()
  await putUntilContested(race, effects)
  await race.settled({ state: 'invoiced' })
  expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
})

test('results of safe handlers of several workers leave no conflict', { timeout }, async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const register = (control: Control, by: string) =>
    control.safe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced', by }))
  const race = await startRace({ cluster, nodes: [0, 1, 2], register })
  await race.put(MANY)
  await race.settled({ state: 'invoiced' })
})

test('workers that all rescue the documents of one dead worker leave no conflict', { timeout }, async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const { effects, register } = countEffects()
  const race = await startRace({ cluster, nodes: [0, 1, 2], register })
  const claim = { worker: 'dead', token: 'dead', at: new Date(0).toISOString(), lease_ms: 1000 }
  await race.put(MANY, { docstate: { state: 'paid', entry: '1-0', claim } })
  await race.settled({ docstate: { parked: {} } })
  expect(effects.size).toBe(0)
})
