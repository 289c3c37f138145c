import { expect, test } from 'vitest'
import { createTestCouch, needs, uniqueName } from '../../support/couchdb.ts'
import { sharedCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { startGlobalChanges } from './rig.ts'

test('three sidecars at three nodes write the same events without a conflict and without a loss', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const urls = cluster.nodes.map(({ url }) => url)
  const couch = createTestCouch({ url: urls[0]! })
  await couch.db('_global_changes').create()
  const name = uniqueName('global-changes')
  const rigs = urls.map((url) => startGlobalChanges({ url, name }))
  for (const rig of rigs) await rig.swept()
  const dbs = Array.from({ length: 10 }, () => couch.db(uniqueName('orders')))
  for (const db of dbs) await db.create()
  for (let round = 0; round < 5; round++) {
    await Promise.all(dbs.map((db) => db.put({ _id: `order-${round}` })))
    for (const db of dbs) await rigs[0]!.seen(db.name, ['created', 'updated'])
  }
  for (const db of dbs.slice(5)) await couch.request({ method: 'DELETE', db: db.name })
  for (const db of dbs.slice(5)) await rigs[0]!.seen(db.name, ['created', 'updated', 'deleted'])
  for (const rig of rigs) await rig.stop()

  const ids = dbs.flatMap((db) => [`created:${db.name}`, `updated:${db.name}`])
  await eventually(async () => {
    for (const id of ids) expect(await rigs[0]!.events.leaves(id)).toHaveLength(1)
  })
  for (const rig of rigs) expect(rig.changes.counts().conflicts).toBe(0)
})
