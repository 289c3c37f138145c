/** Whatever the feed says, and whenever: in the end the events of a database say what is true of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { bucketOf, Ledger } from '../../../sidecar/global-changes/writing/ledger.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import { createTestCouch, deleteDb, freshDb, makeAgain, needs, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { refuse, startFaultyProxy, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { createHold, notFound, settings, startFeedByHand, startGlobalChanges } from './rig.ts'

const often = { ...settings, sweep_interval: 200 }
/** Leaves out the databases of other tests. */
const only = (name: string) => ({ ...allBuckets, buckets: () => new Set([bucketOf(name)]) })
const isList = ({ path }: SeenRequest) => path === '/_all_dbs'
const isInfo = ({ path }: SeenRequest) => path === '/_dbs_info'
const isNote = ({ method, path }: SeenRequest) => method === 'PUT' && path.includes('/_local/')
const isNotes = ({ path }: SeenRequest) => path.endsWith('/_local_docs')

/** Until a sweep has begun, and two more: what it found is written. */
async function sweepsPass(proxy: FaultyProxy): Promise<void> {
  const lists = () => proxy.requests.filter(isList).length
  const before = lists()
  await eventually(() => expect(lists()).toBeGreaterThan(before + 2), { within: 60_000 })
}

test('no event is written before the ledger is read', async () => {
  const db = await freshDb('orders')
  const { proxy, plan, tell, followed } = await startFeedByHand()
  const notes = createHold()
  plan((request) => (isNotes(request) ? notes.requests : undefined))
  const { changes, seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  tell('created', db.name)
  // It has left its windows, and has not been written.
  const isWithWriter = { pendingEvents: 0, pendingWrites: 0, lagMs: expect.toSatisfy((ms: number) => ms > 0) as number }
  await eventually(() => expect(changes.counts()).toMatchObject(isWithWriter))
  await sleep(500)
  expect(await written(db.name)).toEqual([])
  notes.release()
  await seen(db.name, ['created'])
  await sweepsPass(proxy)
  expect(await written(db.name)).toEqual(['created 1'])
})

test('a database is made again while no sidecar runs, and the feed tells only that it was made', async () => {
  needs('database identity')
  const db = await freshDb('orders')
  const first = startGlobalChanges({ partition: only(db.name) })
  await first.seen(db.name, ['created'])
  await first.stop()
  await makeAgain(db)
  const { proxy, tell, followed } = await startFeedByHand()
  const again = startGlobalChanges({ name: first.name, partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  tell('created', db.name) // while the first sweep leaves to the feed what it found
  await eventually(async () => expect(await again.written(db.name)).toEqual(['created 2', 'deleted 1']))
})

test('a database is gone before its event is written, and the feed does not tell', async () => {
  const db = await freshDb('orders')
  await deleteDb(db.name)
  const { proxy, tell, followed } = await startFeedByHand()
  const { seen } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  tell('created', db.name)
  await seen(db.name, ['created', 'deleted'])
})

test('an update of a database that is gone comes after its deletion, which is told again', async () => {
  const { proxy, tell, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
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
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url })
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

test('a database is made while a sweep waits for the list of all, and cannot be read afterwards', async () => {
  const { proxy, plan, tell, followed } = await startFeedByHand()
  const name = uniqueName('orders')
  const { changes, couch, seen, kinds } = startGlobalChanges({ partition: only(name), by: proxy.url })
  onTestFinished(() => deleteDb(name))
  await followed()
  await eventually(() => expect(proxy.requests.filter(isList).length).toBeGreaterThan(1)) // once more for the feed
  const list = createHold()
  proxy.next(list.answers, isList)
  changes.change(often)
  await list.held
  await couch.db(name).create()
  tell('created', name)
  await seen(name, ['created'])
  plan((request) => (isInfo(request) ? notFound : undefined))
  list.release()
  await sweepsPass(proxy)
  expect(await kinds(name)).toEqual(['created'])
})

test('a database is deleted, and both are told, while a sweep waits for others to tell that it was made', async () => {
  const { proxy, tell, followed } = await startFeedByHand()
  const name = uniqueName('orders')
  const { changes, couch, seen, written } = startGlobalChanges({ partition: only(name), by: proxy.url })
  await followed()
  await eventually(() => expect(proxy.requests.filter(isList).length).toBeGreaterThan(1)) // once more for the feed
  await couch.db(name).create()
  const reading = createHold()
  proxy.next(reading.answers, (request) => isInfo(request) && request.body.includes(name))
  changes.change(often)
  await reading.held
  reading.release()
  await deleteDb(name)
  tell('created', name)
  tell('deleted', name)
  await seen(name, ['created', 'deleted'])
  await sweepsPass(proxy)
  expect(await written(name)).toEqual(['created 1', 'deleted 1'])
})

test('that a database was made is not written before it is noted', async () => {
  const { proxy, plan, tell, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  plan((request) => (isNote(request) ? refuse(500) : undefined))
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  await followed()
  tell('created', db.name)
  await eventually(() => expect(proxy.requests.filter(isNote).length).toBeGreaterThan(1))
  expect(await written(db.name)).toEqual([])
  plan(() => undefined)
  await seen(db.name, ['created'])
})

test.each([
  { what: 'deleted', happens: (db: Database) => deleteDb(db.name), wanted: ['created 1', 'deleted 1'] },
  { what: 'made again', happens: makeAgain, wanted: ['created 2', 'deleted 1'] },
])('a database is $what after the sidecar was killed that told that it was made', async ({ happens, wanted }) => {
  needs('database identity')
  const { proxy, tell, followed } = await startFeedByHand()
  const db = createTestCouch().db(uniqueName('orders'))
  const first = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  onTestFinished(() => deleteDb(db.name))
  await followed()
  await db.create()
  tell('created', db.name)
  await first.seen(db.name, ['created'])
  await first.kill(proxy)
  await happens(db)
  const { proxy: by } = await startFeedByHand() // has nothing of this
  const again = startGlobalChanges({ name: first.name, partition: only(db.name), by: by.url })
  await eventually(async () => expect(await again.written(db.name)).toEqual(wanted))
})

test.each([
  { how: 'has gone before it is read', isGone: true, again: (db: Database) => sleep(1100).then(() => db.create()) },
  { how: 'is said falsely to be gone', isGone: false, again: makeAgain },
])('a database is told to be made, $how, and is made again while no sidecar runs', async ({ isGone, again }) => {
  needs('database identity')
  const { proxy, plan, tell, followed } = await startFeedByHand()
  const db = createTestCouch().db(uniqueName('orders'))
  const first = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  onTestFinished(() => deleteDb(db.name))
  await followed()
  await db.create()
  if (isGone) await deleteDb(db.name)
  else plan((request) => (isInfo(request) ? notFound : undefined))
  tell('created', db.name)
  await first.seen(db.name, ['created'])
  await first.kill(proxy)
  await again(db)
  const { proxy: by } = await startFeedByHand() // has nothing of this
  const second = startGlobalChanges({ name: first.name, partition: only(db.name), by: by.url })
  await eventually(async () => expect(await second.written(db.name)).toEqual(['created 2', 'deleted 1']))
})

test('a note that is being written for one event is waited for by the next', async () => {
  const db = await freshDb('orders')
  const { signal } = new AbortController()
  const proxy = await startFaultyProxy()
  const through = new Ledger(createTestCouch({ url: proxy.url }).db(db.name))
  await through.own(new Set([bucketOf('shop')]), signal)
  const first = createHold()
  proxy.plan((request) => (isNote(request) ? refuse(500) : undefined))
  proxy.next(async (exchange) => {
    await first.hold()
    await refuse(500)(exchange)
  }, isNote)
  const note = () => through.note(new Map([['shop', { life: '1', changes: -1 }]]), signal)
  const notes = [note()]
  await first.held
  notes.push(note())
  first.release()
  expect((await Promise.allSettled(notes)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
