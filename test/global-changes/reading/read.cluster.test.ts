import { expect, test } from 'vitest'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { sharedCluster } from '../../support/couchdb-cluster.ts'
import { sample } from '../../support/thorough.ts'
import { readWhileWriting } from './crowd.ts'
import { eventDatabase } from './event-database.ts'
import { createFeed } from './rig.ts'

test('a cluster loses no row while its nodes answer in turn, each from its own copies', async () => {
  needs('cluster')
  const cluster = await sharedCluster()
  const [forPages, forTheFeed, forWriting] = cluster.nodes.map(({ url }) => createTestCouch({ url })) as [
    Couch,
    Couch,
    Couch,
  ]
  const balanced = { ...forPages, db: (name: string) => forTheFeed.db(name) }
  for (const name of sample(['first', 'second', 'third'], 3)) {
    const db = forWriting.db(name)
    await db.create()
    const rig = createFeed(name, balanced)
    await readWhileWriting(eventDatabase(db), rig)
    expect(rig.feed.counts().slow).toBe(0)
  }
})
