/** Three workers, each at another node of a cluster, that reach for every document of one database. */
import { expect, onTestFinished } from 'vitest'
import { createCouch } from '../../../sidecar/couch/client.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { createTestCouch, uniqueName } from '../../support/couchdb.ts'
import type { CouchCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { docstateIn, startRig } from '../rig.ts'

export interface RaceOptions {
  readonly cluster: CouchCluster
  /** Of the node that each worker talks to. */
  readonly nodes: readonly number[]
  readonly register: (control: Control, worker: string) => void
}

export interface Race {
  /** Puts so many documents more, with these fields. */
  put(count: number, fields?: object): Promise<void>
  /** How many documents there are. */
  count(): number
  /** How many of them more than one worker tried to claim. */
  contested(): number
  /** How many claims were stored below the quorum. */
  accepted(): number
  /** Resolves when every node shows all documents so, and none of them in conflict. */
  settled(expected: object): Promise<void>
}

/** Few at a time are claimed by all workers at the same time. */
const TOGETHER = 10

export async function startRace({ cluster, nodes, register }: RaceOptions): Promise<Race> {
  const name = uniqueName('cluster')
  const admins = cluster.nodes.map(({ url }) => createTestCouch({ url }))
  const living = admins[nodes[0]!]!.db(name)
  onTestFinished(() => remove(cluster.nodes[nodes[0]!]!.url, name))
  await living.create()
  const claims = new Map<string, Set<string>>()
  let accepted = 0
  let count = 0

  /** Notes which worker claims what. */
  function watched(db: Database, worker: string): Database {
    const bulk: Database['bulk'] = async (docs, options) => {
      const rows = await db.bulk(docs, options)
      for (const doc of docs.map((text) => JSON.parse(text) as StoredDoc)) {
        if (!docstateIn(doc)?.claim) continue
        claims.set(doc._id, (claims.get(doc._id) ?? new Set()).add(worker))
        if (rows.some((row) => row.id === doc._id && row.accepted)) accepted += 1
      }
      return rows
    }
    return { ...db, bulk }
  }

  for (const [i, node] of nodes.entries()) {
    const worker = `worker-${i}`
    const db = createTestCouch({ url: cluster.nodes[node]!.url }).db(name)
    await eventually(() => db.info()) // the other nodes learn of a new database in a moment
    await startRig(watched(db, worker), (control) => register(control, worker), { worker })
  }
  return {
    async put(more, fields) {
      const ids = Array.from({ length: more }, () => `o${count++}`)
      const docs = ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid', ...fields }))
      for (let from = 0; from < more; from += TOGETHER) await living.bulk(docs.slice(from, from + TOGETHER))
    },
    count: () => count,
    contested: () => [...claims.values()].filter((workers) => workers.size > 1).length,
    accepted: () => accepted,
    async settled(expected) {
      for (const admin of admins) {
        const query = { include_docs: true, conflicts: true, startkey: 'o', endkey: 'p' }
        const list = () => admin.request<{ rows: { doc: StoredDoc }[] }>({ db: name, path: '_all_docs', query })
        await eventually(
          async () => {
            const docs = (await list()).rows.map(({ doc }) => doc)
            expect(docs).toHaveLength(count)
            for (const doc of docs) expect(doc).toMatchObject(expected)
            // The list is that of one copy of each; what several together know of a document is asked for one by one.
            const one = (id: string) => admin.db(name).get(id, { conflicts: true })
            const whole = await Promise.all(docs.map(({ _id }) => one(_id)))
            for (const doc of [...docs, ...whole]) expect(doc).not.toHaveProperty('_conflicts')
          },
          { within: 60_000 },
        )
      }
    },
  }
}

async function remove(url: string, name: string): Promise<void> {
  const couch = createCouch({ url })
  await couch.request({ method: 'DELETE', db: name })
  await couch.close()
}
