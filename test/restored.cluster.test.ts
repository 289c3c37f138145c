/** All nodes restore one range of their databases from an older copy. Each shard copy has its own file. */
import { expect, test } from 'vitest'
import { make, order, startVisits } from './databases/rig.ts'
import { installDocstate } from './docstate/install.ts'
import { createTestCouch, needs, uniqueName } from './support/couchdb.ts'
import { FIRST_RANGE, LAST_RANGE, only } from './support/couchdb-binary.ts'
import { sharedCluster } from './support/couchdb-cluster.ts'
import { eventually } from './support/eventually.ts'

test('a cluster handles documents that are written into a restored range', async () => {
  needs('cluster')
  const { nodes, whole } = await sharedCluster()
  const prefix = uniqueName('restored')
  const names = [`${prefix}-db-a`, `${prefix}-db-b`, `${prefix}-named`]
  const { url } = nodes[0]!
  const databases = await make({ couch: createTestCouch({ url }) }, ...names)
  for (const database of databases) await installDocstate(database, {})
  const rig = startVisits(prefix, {
    ...{ url, lookAgainMs: [600_000, 600_000], sweepMs: 600_000 }, // no sweep runs during the test
    databases: [`${prefix}-db-*`, `${prefix}-named`],
    register: (control, handled) =>
      control.safe('order', 'paid', (doc, { database }) => {
        handled.push(`${database} ${doc._id}`)
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
  })
  async function handle(what: string, count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, i) => `${what}${i}`)
    for (const database of databases) await database.bulk(ids.map((id) => JSON.stringify(order(id))))
    const all = names.flatMap((name) => ids.map((id) => `${name} ${id}`))
    const missing = () => all.filter((one) => !rig.handled.includes(one))
    const reportAndCheck = () => {
      for (const name of names) rig.report(name) // repeated: the copy that is read may receive a write after its event
      expect(missing()).toEqual([])
    }
    await eventually(reportAndCheck)
    await eventually(() => expect(rig.visited()).toMatchObject({ databases: 2, open: 0, waiting: 0 }))
  }
  await handle('before', 10)
  for (const range of [FIRST_RANGE, LAST_RANGE]) {
    const copies = await Promise.all(nodes.map((node) => node.copy()))
    await handle(`lost-${range}-`, 40)
    for (const node of nodes) await node.kill()
    await Promise.all(nodes.map((node, i) => node.restart(only(copies[i]!, names, range))))
    await whole()
    await handle(`after-${range}-`, 10)
  }
})
