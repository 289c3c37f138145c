import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../sidecar/global-changes/writing/ledger.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import { createTestCouch, deleteDb, freshDb, makeAgain, needs, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { settings, startGlobalChanges } from './rig.ts'

test('a database that is created, changed and deleted gets its three events', async () => {
  const { couch, swept, seen } = startGlobalChanges()
  await swept()
  const db = couch.db(uniqueName('orders'))
  await db.create()
  await seen(db.name, ['created'])
  await db.put({ _id: 'a' })
  await seen(db.name, ['created', 'updated'])
  await deleteDb(db.name)
  await seen(db.name, ['created', 'updated', 'deleted'])
})

test('an existing database gets its events once: neither a restart nor time repeats them', async () => {
  const db = await freshDb('orders')
  await db.put({ _id: 'a' })
  const first = startGlobalChanges()
  await first.seen(db.name, ['created', 'updated'])
  await first.stop()
  const before = await first.written(db.name)
  const again = startGlobalChanges({ name: first.name, settings: { ...settings, sweep_interval: 1000 } })
  for (let look = 0; look < 3; look++) await again.seen((await freshDb('other')).name, ['created'])
  expect(await again.written(db.name)).toEqual(before)
})

test('changes without a running sidecar get their events after its start', async () => {
  const [stays, goes] = [await freshDb('stays'), await freshDb('goes')]
  const first = startGlobalChanges()
  await first.seen(stays.name, ['created'])
  await first.seen(goes.name, ['created'])
  await first.stop()
  await stays.put({ _id: 'a' })
  await deleteDb(goes.name)
  const again = startGlobalChanges({ name: first.name })
  await again.seen(stays.name, ['created', 'updated'])
  await again.seen(goes.name, ['created', 'deleted'])
})

test('many simultaneous updates become one event document', async () => {
  const { swept, seen, written } = startGlobalChanges({ settings: { ...settings, max_event_delay: 300 } })
  const db = await freshDb('orders')
  await swept()
  await seen(db.name, ['created'])
  for (let i = 0; i < 20; i++) await db.put({ _id: `order-${i}` })
  await eventually(async () => expect(await written(db.name)).toHaveLength(2))
  const [, updated] = await written(db.name)
  expect(Number(updated!.split(' ')[1])).toBeLessThanOrEqual(3)
})

test('the event database has no events of its own', async () => {
  const { name, swept, seen, written } = startGlobalChanges()
  await swept()
  const db = await freshDb('orders')
  await seen(db.name, ['created'])
  expect(await written(name)).toEqual([])
})

test('a database with slashes and special characters in its name gets its events', async () => {
  needs('slash in database names')
  const { couch, swept, seen } = startGlobalChanges()
  await swept()
  const db = couch.db(`acme/${uniqueName('a_$()+-')}/b`)
  await db.create()
  await db.put({ _id: 'ä' })
  await seen(db.name, ['created', 'updated'])
  await deleteDb(db.name)
  await seen(db.name, ['created', 'updated', 'deleted'])
})

test('a document and its second revision cause created and updated only, as in the test of CouchDB', async () => {
  needs('slash in database names')
  const { couch, swept, seen, written, kinds } = startGlobalChanges()
  await swept()
  const db = couch.db(`foo/${uniqueName('test')}`)
  onTestFinished(() => deleteDb(db.name))
  await db.create()
  const _rev = await db.put({ _id: 'bar/baz' })
  await seen(db.name, ['created', 'updated'])
  const before = await written(db.name)
  await db.put({ _id: 'bar/baz', _rev })
  await eventually(async () => expect(await written(db.name)).not.toEqual(before))
  expect(await kinds(db.name)).toEqual(['created', 'updated'])
})

test('a database deleted and created again without a running sidecar gets its events', async () => {
  needs('database identity')
  const db = await freshDb('orders')
  await db.put({ _id: 'a' })
  const first = startGlobalChanges({ settings: { ...settings, sweep_interval: 200 } })
  await first.seen(db.name, ['created', 'updated'])
  const noted = async () =>
    JSON.stringify(await first.events.find(`_local/couchdb-sidecar:databases:${bucketOf(db.name)}`))
  await eventually(async () => expect(await noted()).toContain(db.name)) // else no sweep finds the deletion
  await first.stop()
  await makeAgain(db)
  const again = startGlobalChanges({ name: first.name })
  await again.seen(db.name, ['created', 'updated', 'deleted'])
  await eventually(async () => expect(await again.written(db.name)).toContain('created 2')) // the next write
})

test('switching the feature off drops pending events, and switching it on finds later changes', async () => {
  const { changes, swept, seen, kinds } = startGlobalChanges({ settings: { ...settings, max_write_delay: 60_000 } })
  const [one, other] = [await freshDb('one'), await freshDb('other')]
  await swept()
  await seen(one.name, ['created'])
  await seen(other.name, ['created'])
  await one.put({ _id: 'a' })
  await eventually(() => expect(changes.counts().pendingWrites).toBeGreaterThan(0))
  changes.change({ ...settings, update_db: false })
  expect(changes.counts()).toMatchObject({ pendingEvents: 0, pendingWrites: 0 })
  await other.put({ _id: 'a' })
  const before = changes.counts().written
  changes.change({ ...settings, update_db: true, max_write_delay: 0 })
  await seen(one.name, ['created', 'updated'])
  await seen(other.name, ['created', 'updated'])
  expect(changes.counts().written).toBeGreaterThan(before)
  expect(await kinds(one.name)).toEqual(['created', 'updated'])
})

test('a stop writes the pending events', async () => {
  const delayed = { ...settings, max_event_delay: 60_000 }
  async function stopWhilePending() {
    const db = await freshDb('orders')
    const ofThis = { ...allBuckets, buckets: () => new Set([bucketOf(db.name)]) } // other tests have databases, too
    const { changes, seen, stop, kinds } = startGlobalChanges({ partition: ofThis, settings: delayed })
    await seen(db.name, ['created'])
    for (const until = Date.now() + 3000; Date.now() < until; await sleep(300)) {
      await db.put({ _id: uniqueName('order') }) // its feed may not exist yet
    }
    expect(changes.counts().pendingEvents).toBeGreaterThan(0)
    await stop()
    return kinds(db.name)
  }
  await eventually(async () => expect(await stopWhilePending()).toEqual(['created', 'updated']))
})

test('the event database admits only admins and is created again with all events after its deletion', async () => {
  needs('database identity')
  const rig = startGlobalChanges({ settings: { ...settings, sweep_interval: 1000 } })
  const db = await freshDb('orders')
  await rig.seen(db.name, ['created'])
  const { url } = rig.couch
  const anonymous = createTestCouch({ url })
  await expect(anonymous.db(rig.name).find('created:_users')).rejects.toMatchObject({ code: 'unauthorized' })
  await deleteDb(rig.name)
  await eventually(async () => expect(await rig.kinds(db.name)).toEqual(['created']))
  await eventually(async () => expect(await rig.written('_users')).not.toEqual([]))
})
