import { expect, test } from 'vitest'
import { needs, createTestCouch, uniqueName } from '../support/couchdb.ts'
import { sharedCluster } from '../support/couchdb-cluster.ts'
import { eventually } from '../support/eventually.ts'

test('a partitioned node keeps working alone and has all documents after the network heals', async () => {
  needs('cluster')
  const { nodes, part, heal } = await sharedCluster()
  const name = uniqueName('parted')
  const [one, two] = nodes.map(({ url }) => createTestCouch({ url }).db(name))
  await one!.create()
  await eventually(() => two!.put({ _id: 'before' }))
  await part(nodes[0]!)
  await one!.put({ _id: 'here' })
  await two!.put({ _id: 'there' })
  expect(await one!.find('there')).toBeUndefined()
  expect(await two!.find('here')).toBeUndefined()
  await heal()
  await eventually(async () => expect(await two!.find('here')).toBeDefined())
  await eventually(async () => expect(await one!.find('there')).toBeDefined())
})
