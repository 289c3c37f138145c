/** Documents that two nodes of a cluster create with different bodies, so that they begin in conflict. */
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { createCouch } from '../../../sidecar/couch/client.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import { CouchError } from '../../../sidecar/couch/couch-errors.ts'
import { createTestCouch, needs, uniqueName } from '../../support/couchdb.ts'
import { sharedCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { amount } from '../../support/thorough.ts'
import { startRig } from '../rig.ts'
import { untilSettled } from './watched-claims.ts'

const timeout = 240_000

/** Creates a database and returns one connection per node. */
async function startNodes() {
  const { nodes } = await sharedCluster()
  const name = uniqueName('branches')
  const couches = nodes.map(({ url }) => createTestCouch({ url }))
  const databases = couches.map((couch) => couch.db(name))
  onTestFinished(async () => {
    const couch = createCouch({ url: nodes[0]!.url })
    await couch.db(name).drop()
    await couch.close()
  })
  await databases[0]!.create()
  for (const db of databases) await eventually(() => db.info())
  return { name, couches, databases }
}

/** Counts the runs of the handler for each document. */
function countEffects() {
  const effects = new Map<string, number>()
  const start = (db: Database, worker: string) =>
    startRig(
      db,
      (control) =>
        control.unsafe('order', 'paid', async (doc) => {
          effects.set(doc._id, (effects.get(doc._id) ?? 0) + 1)
          return { ...doc, state: 'invoiced' }
        }),
      { worker },
    )
  return { effects, start }
}

const MANY = amount(100, 400)
const TOGETHER = 10

test(
  'a document created at two nodes at the same time with different bodies is handled once',
  { timeout },
  async () => {
    needs('cluster')
    const { name, couches, databases } = await startNodes()
    const { effects, start } = countEffects()
    for (const [i, db] of databases.entries()) await start(db, `worker-${i}`)
    const put = async (db: Database, doc: { _id: string }) => {
      const made = await db.put(doc).catch((thrown: unknown) => {
        if (!(thrown instanceof CouchError)) throw thrown // all copies already had the other document
      })
      return made !== undefined
    }
    let twice = 0
    let count = 0
    for (; count < MANY || (twice === 0 && count < 20 * MANY); count += TOGETHER) {
      const ids = Array.from({ length: TOGETHER }, (_, i) => `o${count + i}`)
      await Promise.all(
        ids.map(async (_id) => {
          const doc = (by: number) => ({ _id, type: 'order', state: 'paid', by })
          const made = await Promise.all([put(databases[0]!, doc(0)), put(databases[1]!, doc(1))])
          twice += made.every(Boolean) ? 1 : 0
        }),
      )
    }
    await untilSettled(couches, name, count, { state: 'invoiced' })
    expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
    expect(effects.size).toBe(count)
    expect(twice, 'documents with two bodies').toBeGreaterThan(0)
  },
)

test('no handler runs if a finished branch arrives during the claim', { timeout }, async () => {
  needs('cluster')
  const { name, couches, databases } = await startNodes()
  const { effects, start } = countEffects()
  const [db] = databases as [Database]
  const revisions = { start: 3, ids: ['c', 'b', 'a'].map((letter) => letter.repeat(32)) }
  const finished = {
    _id: 'o',
    _rev: `3-${revisions.ids[0]}`,
    _revisions: revisions,
    type: 'order',
    state: 'invoiced',
  }
  let claims = 0
  /** Stops the feed after the first claim, so that only a read can find the branch. */
  async function* tellBefore(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    for await (const some of bytes) {
      if (claims > 0) await once(signal, 'abort')
      yield some
    }
  }
  const worker: Database = {
    ...db,
    changes: async (query, signal) => tellBefore(await db.changes(query, signal), signal),
    async bulk(docs, options) {
      if (docs.some((doc) => doc.includes('"claim"')) && claims++ === 0) await db.merge([finished])
      return db.bulk(docs, options)
    },
  }
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await start(worker, 'worker')
  await eventually(() => expect(claims).toBe(1))
  await untilSettled(couches, name, 1, { state: 'invoiced' })
  expect(effects.size).toBe(0)
})
