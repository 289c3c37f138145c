import { expect, test } from 'vitest'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { sharedCluster } from '../support/couchdb-cluster.ts'
import { eventually } from '../support/eventually.ts'

test('a private cluster stores three copies of every document, also on a node that was killed meanwhile', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const dbs = cluster.nodes.map(({ url }) => createTestCouch({ url }).db('kept'))
  await dbs[0]!.create()
  expect(await dbs[1]!.info()).toMatchObject({ cluster: { n: 3, w: 2, q: 2 } })
  await dbs[2]!.put({ _id: 'a' })
  await cluster.nodes[2]!.kill()
  await dbs[1]!.put({ _id: 'b' })
  await cluster.nodes[2]!.restart()
  await cluster.whole()
  await eventually(async () => expect(await dbs[2]!.getMany(['a', 'b'])).toHaveLength(2))
})
