import { expect, test } from 'vitest'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { copyId } from '../../../sidecar/deploy/staging/copy.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { sharedCluster } from '../../support/couchdb-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { pass, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { pollAllTheTime, deployShop, openShop, shop } from './rig.ts'
import { answerOf } from '../../support/answers.ts'

/** The missing updates in each node's copy of the index, in the shard that has the design document. */
async function pendingOf(couch: Couch, db: string, ddoc: string): Promise<number[]> {
  const { nodes, range } = await answerOf<{ nodes: string[]; range: string }>(couch, {
    db,
    path: `_shards/${encodeURIComponent(ddoc)}`,
  })
  return Promise.all(
    nodes.map(async (node) => {
      const names = await answerOf<string[]>(couch, { path: `_node/${node}/_all_dbs` })
      const shard = names.find((name) => name.startsWith(`shards/${range}/${db}.`))!
      const path = `_node/${node}/${encodeURIComponent(shard)}/${ddoc}/_info`
      const answer = await answerOf<{ view_index: { pending_updates: number } }>(couch, { path })
      return answer.view_index.pending_updates
    }),
  )
}

test('on a cluster all copies of the new index are complete before the swap, and no query fails', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const couches = cluster.nodes.map(({ url }) => createTestCouch({ url }))
  const opened = await openShop(1000, couches[0])
  const { db } = opened
  const polling = couches.map((couch) => pollAllTheTime({ ...opened, rows: () => opened.rows(couch) }))
  const proxy = await startFaultyProxy(cluster.nodes[1]!.url)
  let pending: number[] = []
  const isSwapping = ({ path, body }: { path: string; body: string }) =>
    path.endsWith('/_bulk_docs') && body.includes('"step":"swapping"')
  proxy.next(async (exchange) => {
    pending = await pendingOf(couches[0]!, db.name, copyId('staged', '_design/app'))
    await pass(exchange)
  }, isSwapping)
  await deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2, 1), { deadAfterMs: 10_000 })
  // A query or a list may be answered by the copy that receives the last writes after the deploy has ended.
  for (const { answers, stop } of polling) {
    await eventually(() => expect(answers.at(-1)).toBe(2))
    await stop()
  }
  expect(pending).toHaveLength(3)
  expect(Math.max(...pending)).toBeLessThan(5) // the deploy itself writes, too
  for (const { answers } of polling) expect(new Set(answers)).toEqual(new Set([1, 2]))
  await eventually(async () => expect(await opened.left()).toEqual([]))
})
