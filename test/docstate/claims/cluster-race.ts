/** Three workers at different nodes of a cluster that claim every document of one database. */
import { onTestFinished } from 'vitest'
import { createCouch } from '../../../sidecar/couch/client.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { createTestCouch, uniqueName } from '../../support/couchdb.ts'
import type { CouchCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig } from '../rig.ts'
import { untilSettled, watchClaims, type WatchedClaims } from './watched-claims.ts'

export interface RaceOptions {
  readonly cluster: CouchCluster
  /** The index of the node of each worker. */
  readonly nodes: readonly number[]
  readonly register: (control: Control, worker: string) => void
}

export interface Race extends Pick<WatchedClaims, 'contested' | 'accepted'> {
  /** Puts `count` more documents with these fields. */
  put(count: number, fields?: object): Promise<void>
  /** The number of documents so far. */
  count(): number
  /** Waits until every node shows all documents with these fields and without conflicts. */
  settled(expected: object): Promise<void>
}

/** A small batch makes all workers claim the same documents at the same time. */
const TOGETHER = 10

export async function startRace({ cluster, nodes, register }: RaceOptions): Promise<Race> {
  const name = uniqueName('cluster')
  const admins = cluster.nodes.map(({ url }) => createTestCouch({ url }))
  const living = admins[nodes[0]!]!.db(name)
  onTestFinished(() => remove(cluster.nodes[nodes[0]!]!.url, name))
  await living.create()
  const { watched, contested, accepted } = watchClaims()
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
    ...{ contested, accepted },
    async settled(expected) {
      await untilSettled(admins, name, count, expected)
    },
  }
}

async function remove(url: string, name: string): Promise<void> {
  const couch = createCouch({ url })
  await couch.request({ method: 'DELETE', db: name })
  await couch.close()
}
