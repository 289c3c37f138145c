/**
 * Three private CouchDBs as one cluster: each node stores every document (n=3), and the quorum is two. The cluster has
 * its own port mapper (epmd) on its own port, so that two runs do not interfere and nothing outlives a run. All nodes
 * listen at 127.0.0.1 only.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createCouch } from '../../sidecar/couch/client.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { startOnOwnPort } from './free-port.ts'
import { eventually } from './eventually.ts'
import { createNetwork } from './cluster-network.ts'
import { findCouchBinary, startCouchBinary, type PrivateCouch } from './couchdb-binary.ts'
import { findErlangTool } from './erlang-tools.ts'
import { startOwnedProcess, type OwnedProcess } from './owned-process.ts'
import { answerOf } from './answers.ts'

export interface CouchCluster {
  readonly nodes: readonly PrivateCouch[]
  /** Resolves when every node sees all nodes. */
  whole(this: void): Promise<void>
  /** Cuts the network between this node and the others. Each side works with the nodes that it reaches. */
  part(this: void, node: PrivateCouch): Promise<void>
  /** Restores the network, and resolves when the cluster is complete. */
  heal(this: void): Promise<void>
  /** Stops all nodes and removes their data. */
  stop(): Promise<void>
}

const NODES = 3
const SYSTEM_DATABASES = ['_users', '_replicator', '_global_changes']
const WHOLE_MS = 90_000

/** The port mapper that ships with CouchDB's Erlang, if both exist. */
export const findPortMapper = (): string | undefined => findErlangTool('epmd')

let shared: Promise<CouchCluster> | undefined

/**
 * The cluster that all tests share, one at a time. Call `needs('cluster')` first. It is complete and without databases
 * when a test starts.
 */
export const sharedCluster = (): Promise<CouchCluster> => (shared ??= startCluster())

export const stopSharedCluster = async (): Promise<void> => (await sharedCluster()).stop()

/** Restores the nodes and the network that a test has cut, and removes the databases that it has created. */
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

/** A private cluster. Call `needs('cluster')` first. */
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
    const whole = () => untilWhole(nodes)
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
  return startOnOwnPort(async (port) => {
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

/** Registers all nodes at a node. One registration would do, but under load its spread took more than 30 s. */
async function introduce({ url }: PrivateCouch, names: readonly string[]): Promise<void> {
  const couch = createCouch({ url })
  try {
    for (const name of names) {
      const path = `_local/_nodes/${encodeURIComponent(name)}`
      const introduceOne = () =>
        couch.request({ method: 'PUT', db: '_node', path, body: {} }).catch((thrown: unknown) => {
          if (!isCouchError(thrown, 'conflict')) throw thrown // already registered
        })
      // CouchDB creates the database of nodes at this moment and may answer 500 `file_exists`.
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

/** Waits until each node sees all nodes. */
async function untilWhole(nodes: readonly PrivateCouch[]): Promise<void> {
  const couches = nodes.map(({ url }) => createCouch({ url }))
  const deadline = performance.now() + WHOLE_MS
  try {
    for (;;) {
      const views = await Promise.all(couches.map((couch) => answerOf<Membership>(couch, { path: '_membership' })))
      if (views.every(isWhole)) return
      if (performance.now() > deadline) throw new Error(`not a whole cluster; its nodes see ${JSON.stringify(views)}`)
      await delay(50)
    }
  } finally {
    for (const couch of couches) await couch.close()
  }
}

/** What a node sees: the nodes that are connected, and those that belong to the cluster. */
interface Membership {
  readonly all_nodes: readonly string[]
  readonly cluster_nodes: readonly string[]
}

const isWhole = ({ all_nodes, cluster_nodes }: Membership): boolean =>
  all_nodes.length === NODES && cluster_nodes.length === NODES
