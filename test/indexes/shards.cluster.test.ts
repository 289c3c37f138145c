import { expect, test } from 'vitest'
import { readIndexCopies } from '../../sidecar/indexes/kinds/view-copies.ts'
import { needs } from '../support/couchdb.ts'
import { sharedCluster } from '../support/couchdb-cluster.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { configureAll, fill, map, onlyBeginningWith, slowMap, startIndexes, write } from './rig.ts'

thoroughTest('under steady writes, lagging shard copies catch up again and again, without a failure', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const { couch, report, fresh, indexes } = startIndexes({
    ...{ url: cluster.nodes[0]!.url, partition: onlyBeginningWith('busy') },
  })
  await configureAll(couch, 'ken', 'batch_channels', '0')
  await configureAll(couch, 'ken', 'incremental_channels', '0')
  const db = await fill(couch, 50, { one: map }, 'busy')
  const began = Date.now()
  while (Date.now() - began < 15_000) {
    await write(couch, db.name, 2)
    report(db.name)
  }
  expect(indexes.counts().built).toBeGreaterThan(3)
  expect(indexes.counts().failures).toBe(0)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
})

test('on three nodes an index counts as up to date only when every copy is built', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const { couch, report, fresh, indexes } = startIndexes({
    ...{ url: cluster.nodes[0]!.url, partition: onlyBeginningWith('copied'), hasDatabaseEvents: () => false },
  })
  await configureAll(couch, 'ken', 'batch_channels', '0')
  await configureAll(couch, 'ken', 'incremental_channels', '0')
  await eventually(() => expect(indexes.counts().serversKen).toBe('off'))
  const db = await fill(couch, 50, { slow: slowMap(3), fast: map }, 'copied')
  for (let round = 0; round < 3; round++) {
    await write(couch, db.name, 20)
    report(db.name)
    await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
    for (const name of ['slow', 'fast']) {
      const copies = await readIndexCopies(couch, db.name, `_design/${name}`)
      expect(copies.map(({ node, pending }) => `${node.split('@')[0]} ${pending}`).sort()).toEqual([
        'couchdb1 0',
        'couchdb2 0',
        'couchdb3 0',
      ])
    }
  }
  await cluster.nodes[2]!.kill()
  await write(couch, db.name, 20)
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
  await cluster.nodes[2]!.restart()
})
