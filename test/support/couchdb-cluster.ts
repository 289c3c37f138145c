/**
 * Three private CouchDBs as one cluster: every document is kept by all of them (n=3), and two of them are the quorum.
 * They find each other by a port mapper (epmd) of their own on a port of its own, so that clusters of two runs have
 * nothing to do with each other, and nothing outlives the run. They listen at 127.0.0.1 only.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createCouch } from '../../sidecar/couch/client.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { startOnFreePort } from '../../embedded/src/free-port.ts'
import { eventually } from './eventually.ts'
import { createNetwork } from './cluster-network.ts'
import { findCouchBinary, startCouchBinary, type PrivateCouch } from './couchdb-binary.ts'
import { findErlangTool } from './erlang-tools.ts'
import { startOwnedProcess, type OwnedProcess } from './owned-process.ts'
import { answerOf } from './answers.ts'

export interface CouchCluster {
  readonly nodes: readonly PrivateCouch[]
  /** Resolves when every node sees all of them. */
  whole(this: void): Promise<void>
  /** Cuts the network between this node and the others: each goes on with those that it reaches. */
  part(this: void, node: PrivateCouch): Promise<void>
  /** Brings the network back, and resolves when the cluster is whole. */
  heal(this: void): Promise<void>
  /** Ends all of it and removes the data. */
  stop(): Promise<void>
}

const NODES = 3
const SYSTEM_DATABASES = ['_users', '_replicator', '_global_changes']
const WHOLE_MS = 30_000

/** The port mapper that comes with CouchDB's Erlang, if both are there. */
export const findPortMapper = (): string | undefined => findErlangTool('epmd')

let shared: Promise<CouchCluster> | undefined

/** The one that all tests have in turn; ask `needs('cluster')` first. Whole and without databases when a test begins. */
export const sharedCluster = (): Promise<CouchCluster> => (shared ??= startCluster())

export const stopSharedCluster = async (): Promise<void> => (await sharedCluster()).stop()

/** Brings back the nodes and the network that a test has cut, and removes the databases that it has made. */
export async function renewCluster(): Promise<void> {
  const { nodes, heal } = await sharedCluster()
  for (const node of nodes) if (!(await isUp(node))) await node.restart()
  await heal()
  const couch = createCouch({ url: nodes[0]!.url })
  try {
    const names = await answerOf<string[]>(couch, { path: '_all_dbs' })
    for (const db of names.filter((name) => !name.startsWith('_'))) await couch.request({ method: 'DELETE', db })
  } finally {
    await couch.close()
  }
}

const isUp = ({ url }: PrivateCouch): Promise<boolean> =>
  fetch(`${new URL(url).origin}/_up`).then(
    ({ ok }) => ok,
    () => false,
  )

/** A cluster of one's own; ask `needs('cluster')` first. */
export async function startCluster(): Promise<CouchCluster> {
  const stops: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
  }
  try {
    const epmdPort = await startPortMapper(stops)
    const [cookie, password] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
    const names = Array.from({ length: NODES }, (_, i) => `couchdb${i + 1}@127.0.0.1`)
    const start = async (name: string) => {
      const node = await startCouchBinary(findCouchBinary()!, { node: { name, cookie, epmdPort, password } })
      stops.push(() => node.stop())
      return node
    }
    const starts = await Promise.allSettled(names.map(start))
    const nodes = starts.map((started) => {
      if (started.status === 'rejected') throw started.reason
      return started.value
    })
    const whole = async () => void (await Promise.all(nodes.map((node) => untilWhole(node.url))))
    for (const node of nodes) await introduce(node, names)
    await whole()
    await makeSystemDatabases(nodes[0]!)
    const network = createNetwork({ names, cookie, epmdPort })
    return {
      ...{ nodes, whole, stop },
      part: (node) => network.part(names[nodes.indexOf(node)]!),
      async heal() {
        await network.heal()
        await whole()
      },
    }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

async function startPortMapper(stops: (() => Promise<void>)[]): Promise<number> {
  const home = await mkdtemp(join(tmpdir(), 'couchdb-cluster-'))
  stops.push(() => rm(home, { recursive: true, force: true }))
  return startOnFreePort(randomInt(20_000, 32_000), async (port) => {
    const command = [findPortMapper()!, '-port', String(port), '-address', '127.0.0.1']
    const mapper: OwnedProcess = await startOwnedProcess({ command, home, log: 'epmd.log', env: process.env })
    stops.push(() => mapper.end('remove'))
    await untilListening(port)
    return port
  })
}

async function untilListening(port: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    const listens = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (listens) return
    if (tries === 100) throw new Error(`the port mapper does not listen at port ${port}`)
    await delay(20)
  }
}

/** Tells a node of all. One would do, and tell the others; under load that was seen to take more than half a minute. */
async function introduce({ url }: PrivateCouch, names: readonly string[]): Promise<void> {
  const couch = createCouch({ url })
  try {
    for (const name of names) {
      const path = `_local/_nodes/${encodeURIComponent(name)}`
      const introduceOne = () =>
        couch.request({ method: 'PUT', db: '_node', path, body: {} }).catch((thrown: unknown) => {
          if (!isCouchError(thrown, 'conflict')) throw thrown // it knows
        })
      // CouchDB makes the database of nodes itself in this moment, and may say 500 `file_exists`.
      await eventually(introduceOne)
    }
  } finally {
    await couch.close()
  }
}

async function makeSystemDatabases({ url }: PrivateCouch): Promise<void> {
  const couch = createCouch({ url })
  try {
    for (const name of SYSTEM_DATABASES) await couch.db(name).create()
  } finally {
    await couch.close()
  }
}

async function untilWhole(url: string): Promise<void> {
  const couch = createCouch({ url })
  const deadline = performance.now() + WHOLE_MS
  try {
    for (;;) {
      const seen = await answerOf<{ all_nodes: unknown[]; cluster_nodes: unknown[] }>(couch, { path: '_membership' })
      if (seen.all_nodes.length === NODES && seen.cluster_nodes.length === NODES) return
      if (performance.now() > deadline) throw new Error(`not a whole cluster: ${JSON.stringify(seen)}`)
      await delay(50)
    }
  } finally {
    await couch.close()
  }
}
