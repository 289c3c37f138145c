/** Three workers at different nodes of a cluster that claim every document of one database. */
import { onTestFinished } from 'vitest'
import { createCouch } from '../../../sidecar/couch/client.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { createTestCouch, uniqueName } from '../../support/couchdb.ts'
import type { CouchCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig } from '../rig.ts'
import { isLeftBy, untilHandled, untilSettled, watchClaims, type WatchedClaims } from './watched-claims.ts'

export interface RaceOptions {
  readonly cluster: CouchCluster
  /** The index of the node of each worker. */
  readonly nodes: readonly number[]
  readonly register: (control: Control, worker: string) => void
  /** The index of the worker whose node the test kills. */
  readonly killed?: number
}

export interface Race extends Pick<WatchedClaims, 'contested' | 'accepted'> {
  /** Puts `count` more documents with these fields. */
  put(count: number, fields?: object): Promise<void>
  /** The number of documents so far. */
  count(): number
  /** Waits until each document is in `handled`, or is left by a worker whose node was killed. */
  allHandled(handled: ReadonlyMap<string, number>): Promise<void>
  /**
   * Waits until every node shows all documents without conflicts, each with these fields or left by a worker whose node
   * was killed.
   */
  settled(expected: object): Promise<void>
}

/** A small batch makes all workers claim the same documents at the same time. */
const TOGETHER = 10

export async function startRace({ cluster, nodes, register, killed }: RaceOptions): Promise<Race> {
  const name = uniqueName('cluster')
  const admins = cluster.nodes.map(({ url }) => createTestCouch({ url }))
  const living = admins[nodes[0]!]!.db(name)
  onTestFinished(() => remove(cluster.nodes[nodes[0]!]!.url, name))
  await living.create()
  const { watched, contested, accepted } = watchClaims()
  const isLeft = isLeftBy(killed)
  let count = 0

  for (const [i, node] of nodes.entries()) {
    const worker = `worker-${i}`
    const db = createTestCouch({ url: cluster.nodes[node]!.url }).db(name)
    await eventually(() => db.info()) // the other nodes see a new database after a moment
    await startRig(watched(db, worker), (control) => register(control, worker), { worker })
  }
  return {
    async put(more, fields) {
      const ids = Array.from({ length: more }, () => `o${count++}`)
      const docs = ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid', ...fields }))
      for (let from = 0; from < more; from += TOGETHER) await living.bulk(docs.slice(from, from + TOGETHER))
    },
    count: () => count,
    allHandled: (handled) => untilHandled(living, count, (id) => handled.has(id), isLeft),
    ...{ contested, accepted },
    async settled(expected) {
      await untilSettled(admins, name, count, expected, isLeft)
    },
  }
}

async function remove(url: string, name: string): Promise<void> {
  const couch = createCouch({ url })
  await couch.request({ method: 'DELETE', db: name })
  await couch.close()
}
