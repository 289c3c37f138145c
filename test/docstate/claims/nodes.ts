import { onTestFinished } from 'vitest'
import { createCouch } from '../../../sidecar/couch/client.ts'
import { createTestCouch, uniqueName } from '../../support/couchdb.ts'
import { sharedCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'

/** A database of the cluster, as each node gives it; ask `needs('cluster')` first. */
export async function startNodes() {
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
  return { name, couches, databases, urls: nodes.map(({ url }) => url) }
}
