/** Whatever the feed says, and whenever: in the end the events of a database say what is true of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../sidecar/global-changes/writing/ledger.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/share.ts'
import { deleteDb, freshDb, makeAgain, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import type { FaultyProxy, SeenRequest } from '../../support/faulty-proxy.ts'
import { createHold, settings, startFeedByHand, startGlobalChanges } from './rig.ts'

const often = { ...settings, sweep_interval: 200 }
/** Leaves out the databases of other tests. */
const only = (name: string) => ({ ...allBuckets, buckets: () => new Set([bucketOf(name)]) })
const isList = ({ path }: SeenRequest) => path === '/_all_dbs'
const isNotes = ({ path }: SeenRequest) => path.endsWith('/_local_docs')

/** Until a sweep has begun, and two more: what it found is written. */
async function sweepsPass(proxy: FaultyProxy): Promise<void> {
  const lists = () => proxy.requests.filter(isList).length
  const before = lists()
  await eventually(() => expect(lists()).toBeGreaterThan(before + 2))
}

test('no event is written before the ledger is read', async () => {
  const db = await freshDb('orders')
  const { proxy, plan, tell, followed } = await startFeedByHand()
  const notes = createHold()
  plan((request) => (isNotes(request) ? notes.fault : undefined))
  const slow = { ...often, max_event_delay: 200 }
  const { changes, seen, written } = startGlobalChanges({ share: only(db.name), by: proxy.url, settings: slow })
  await followed()
  tell('created', db.name)
  await eventually(() => expect(changes.counts().pendingEvents).toBe(1))
  await eventually(() => expect(changes.counts()).toMatchObject({ pendingEvents: 0, pendingWrites: 0 }))
  await sleep(500)
  expect(await written(db.name)).toEqual([])
  notes.release()
  await seen(db.name, ['created'])
  await sweepsPass(proxy)
  expect(await written(db.name)).toEqual(['created 1'])
})

test('a database is made again while nobody runs, and the feed tells only that it was made', async () => {
  needs('database identity')
  const db = await freshDb('orders')
  const first = startGlobalChanges({ share: only(db.name) })
  await first.seen(db.name, ['created'])
  await first.stop()
  await makeAgain(db)
  const { proxy, tell, followed } = await startFeedByHand()
  const again = startGlobalChanges({ name: first.name, share: only(db.name), by: proxy.url, settings: often })
  await followed()
  tell('created', db.name) // while the first sweep leaves to the feed what it found
  await eventually(async () => expect(await again.written(db.name)).toEqual(['created 2', 'deleted 1']))
})

test('a database is gone before its event is written, and the feed does not tell', async () => {
  const db = await freshDb('orders')
  await deleteDb(db.name)
  const { proxy, tell, followed } = await startFeedByHand()
  const { seen } = startGlobalChanges({ share: only(db.name), by: proxy.url, settings: often })
  await followed()
  tell('created', db.name)
  await seen(db.name, ['created', 'deleted'])
})

test('an update of a database that is gone comes after its deletion, which is told again', async () => {
  const { proxy, tell, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { seen, written } = startGlobalChanges({ share: only(db.name), by: proxy.url, settings: often })
  await followed()
  await seen(db.name, ['created'])
  await deleteDb(db.name)
  tell('deleted', db.name)
  await seen(db.name, ['created', 'deleted'])
  tell('updated', db.name)
  await eventually(async () => expect(await written(db.name)).toEqual(['created 1', 'updated 1', 'deleted 2']))
})

test('the deletion of an earlier life is told late, and is not written of the database that is there', async () => {
  const { proxy, tell, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { seen, written } = startGlobalChanges({ share: only(db.name), by: proxy.url })
  await followed()
  await seen(db.name, ['created'])
  tell('deleted', db.name)
  await db.put({ _id: 'a' })
  tell('updated', db.name)
  await seen(db.name, ['created', 'updated'])
  tell('deleted', db.name)
  await db.put({ _id: 'b' })
  await eventually(async () => {
    tell('updated', db.name)
    expect(await written(db.name)).toEqual(['created 1', expect.not.stringMatching(/ 1$/)])
  })
})
