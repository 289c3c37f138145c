/** Mishaps of the sidecars, one after the other. The mishap and its victim are drawn at random. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { needs, startPrivateCouch, type PrivateCouch } from '../support/couchdb.ts'
import { startCluster, type CouchCluster } from '../support/couchdb-cluster.ts'
import { cut, cutAfterUpstream, delay, late, pass, refuse, type Fault } from '../support/faulty-proxy.ts'
import { probe, type Board } from './jobs.ts'
import { seeded } from './seeded.ts'
import { LEASE_MS, wrongClock, type Worker } from './trio.ts'

export interface World {
  /** One server, or the nodes of a cluster. */
  readonly nodes: readonly PrivateCouch[]
  /** Resolves when all nodes are connected to each other. */
  readonly whole: () => Promise<void>
  readonly folder: string
  readonly random: () => number
}

export const pick = <T>(random: () => number, from: readonly T[]): T => from[Math.floor(random() * from.length)]!

/** Stopped at the end of the running test, which is skipped without a private server. */
export async function startWorld(seed: number): Promise<World> {
  needs('private server')
  const couch = await startPrivateCouch()
  onTestFinished(() => couch.stop())
  return { nodes: [couch], whole: () => Promise.resolve(), folder: await makeFolder(), random: seeded(seed) }
}

/** Like `startWorld`, with the three nodes of a cluster, which the test can partition. */
export async function startClusterWorld(seed: number): Promise<ClusterWorld> {
  needs('cluster')
  const cluster = await startCluster()
  onTestFinished(() => cluster.stop())
  return { ...cluster, folder: await makeFolder(), random: seeded(seed) }
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'chaos-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export interface ClusterWorld extends World, Pick<CouchCluster, 'part' | 'heal'> {}

/** Resolves when the cause is over. The sidecars must recover by themselves. */
export type Mishap = (victim: Worker, world: World) => Promise<void>

const FAULTS_MS = 3000

/** Applies these faults to the requests of a sidecar for a while. */
export async function withFaults({ proxy }: Worker, choose: () => Fault, forMs = FAULTS_MS): Promise<void> {
  proxy.plan(choose)
  await sleep(forMs)
  proxy.plan(() => undefined)
}

/** Runs a mishap, then waits until some jobs are done, of safe and of unsafe handlers. */
export async function endure<S extends World & { readonly board: Board }>(
  name: string,
  mishap: (victim: Worker, scene: S) => Promise<void>,
  victim: Worker,
  scene: S,
): Promise<void> {
  const began = performance.now()
  await mishap(victim, scene)
  const over = performance.now()
  await probe(scene.board)
  const [took, healed] = [over - began, performance.now() - over].map((ms) => (ms / 1000).toFixed(1))
  console.log(`${name} (${victim.name}): took ${took} s, recovered ${healed} s later`)
}

export const KILL = 'kill -9 and restart'

export const mishaps: Readonly<Record<string, Mishap>> = {
  async [KILL](victim, { random }) {
    await victim.kill()
    await sleep(random() * 2000)
    await victim.start()
  },
  async 'pause for twice the lease'(victim) {
    process.kill(victim.pid, 'SIGSTOP')
    await sleep(2 * LEASE_MS)
    process.kill(victim.pid, 'SIGCONT')
  },
  async 'restart of CouchDB'(_victim, { nodes, whole, random }) {
    await pick(random, nodes).restart()
    await whole()
  },
  async 'errors, cuts and delays'(victim, { random }) {
    const faults = [refuse(500), refuse(503), refuse(429), cut, cutAfterUpstream, delay(500), pass, pass]
    await withFaults(victim, () => pick(random, faults))
  },
  async 'answers later than the lease'(victim) {
    await withFaults(victim, () => late(1.5 * LEASE_MS), 5 * LEASE_MS)
  },
  async 'connections dropped'(victim) {
    victim.proxy.dropConnections()
  },
  async 'a network outage longer than the lease'(victim) {
    await victim.proxy.down()
    await sleep(1.5 * LEASE_MS)
    await victim.proxy.up()
  },
  async 'a clock that is an hour off'(victim, { folder, random }) {
    await victim.stop()
    await victim.start(await wrongClock(folder, random() < 0.5))
  },
}
