/** In the end the events of a database match its state, for any content and timing of the feed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { bucketOf, Ledger } from '../../../sidecar/global-changes/writing/ledger.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import {
  createAgain,
  createTestCouch,
  deleteDb,
  freshDb,
  makeAgain,
  needs,
  nextSecond,
  uniqueName,
} from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { refuse, startFaultyProxy, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { createHold, notFound, settings, startFeedByHand, startGlobalChanges } from './rig.ts'

const often = { ...settings, sweep_interval: 200 }
/** Excludes the databases of other tests. */
const only = (name: string) => ({ ...allBuckets, buckets: () => new Set([bucketOf(name)]) })
const isList = ({ path }: SeenRequest) => path === '/_all_dbs'
const isInfo = ({ path }: SeenRequest) => path === '/_dbs_info'
const isNote = ({ method, path }: SeenRequest) => method === 'PUT' && path.includes('/_local/')
const isNotes = ({ path }: SeenRequest) => path.endsWith('/_local_docs')

/** Waits for the start of a sweep and for two more sweeps, after which its events are written. */
async function sweepsPass(proxy: FaultyProxy): Promise<void> {
  const lists = () => proxy.requests.filter(isList).length
  const before = lists()
  await eventually(() => expect(lists()).toBeGreaterThan(before + 2))
}

test('no event is written before the ledger is read', async () => {
  const db = await freshDb('orders')
  const { proxy, plan, report, followed } = await startFeedByHand()
  const notes = createHold()
  plan((request) => (isNotes(request) ? notes.requests : undefined))
  const { changes, seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  report('created', db.name)
  // The event has left its windows and is not yet written.
  const isWithWriter = { pendingEvents: 0, pendingWrites: 0, lagMs: expect.toSatisfy((ms: number) => ms > 0) as number }
  await eventually(() => expect(changes.counts()).toMatchObject(isWithWriter))
  await sleep(500)
  expect(await written(db.name)).toEqual([])
  notes.release()
  await seen(db.name, ['created'])
  await sweepsPass(proxy)
  expect(await written(db.name)).toEqual(['created 1'])
})

test('a database created again without a sidecar gets all events, though the feed has only a created row', async () => {
  needs('database identity')
  const db = await freshDb('orders')
  const first = startGlobalChanges({ partition: only(db.name) })
  await first.seen(db.name, ['created'])
  await first.stop()
  await makeAgain(db)
  const { proxy, report, followed } = await startFeedByHand()
  const again = startGlobalChanges({ name: first.name, partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  report('created', db.name) // during the first sweep, which leaves recent changes to the feed
  await eventually(async () => expect(await again.written(db.name)).toEqual(['created 2', 'deleted 1']))
})

test('a database deleted before its event is written gets a deleted event without a feed row', async () => {
  const db = await freshDb('orders')
  await deleteDb(db.name)
  const { proxy, report, followed } = await startFeedByHand()
  const { seen } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  report('created', db.name)
  await seen(db.name, ['created', 'deleted'])
})

test('an update of a deleted database follows its deletion, and the deletion is written again', async () => {
  const { proxy, report, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url, settings: often })
  await followed()
  await seen(db.name, ['created'])
  await deleteDb(db.name)
  report('deleted', db.name)
  await seen(db.name, ['created', 'deleted'])
  report('updated', db.name)
  await eventually(async () => expect(await written(db.name)).toEqual(['created 1', 'updated 1', 'deleted 2']))
})

test('a sweep repeats no event of changes that follow each other closely', async () => {
  const { proxy, report, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { changes, seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  await followed()
  await seen(db.name, ['created'])
  for (let count = 1; count <= 3; count++) {
    await db.put({ _id: `${count}` })
    report('updated', db.name)
    await eventually(async () => expect(await written(db.name)).toContain(`updated ${count}`))
  }
  changes.change(often)
  await sweepsPass(proxy)
  expect(await written(db.name)).toEqual(['created 1', 'updated 3'])
})

test('a late deletion of an earlier life is not written for the existing database', async () => {
  const { proxy, report, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  await followed()
  await seen(db.name, ['created'])
  report('deleted', db.name)
  await db.put({ _id: 'a' })
  report('updated', db.name)
  await seen(db.name, ['created', 'updated'])
  report('deleted', db.name)
  await db.put({ _id: 'b' })
  await eventually(async () => {
    report('updated', db.name)
    expect(await written(db.name)).toEqual(['created 1', expect.not.stringMatching(/ 1$/)])
  })
})

test('a database that is created while a sweep waits for the list, and unreadable later, gets its event', async () => {
  const { proxy, plan, report, followed } = await startFeedByHand()
  const name = uniqueName('orders')
  const { changes, couch, seen, kinds } = startGlobalChanges({ partition: only(name), by: proxy.url })
  onTestFinished(() => deleteDb(name))
  await followed()
  // Waits for the sweep that the start of the feed causes.
  await eventually(() => expect(proxy.requests.filter(isList).length).toBeGreaterThan(1))
  const list = createHold()
  proxy.next(list.answers, isList)
  changes.change(often)
  await list.held
  await couch.db(name).create()
  report('created', name)
  await seen(name, ['created'])
  plan((request) => (isInfo(request) ? notFound : undefined))
  list.release()
  await sweepsPass(proxy)
  expect(await kinds(name)).toEqual(['created'])
})

test('a database created and deleted during a sweep keeps its deleted event', async () => {
  const { proxy, report, followed } = await startFeedByHand()
  const name = uniqueName('orders')
  const { changes, couch, seen, written } = startGlobalChanges({ partition: only(name), by: proxy.url })
  await followed()
  // Waits for the sweep that the start of the feed causes.
  await eventually(() => expect(proxy.requests.filter(isList).length).toBeGreaterThan(1))
  await couch.db(name).create()
  const reading = createHold()
  proxy.next(reading.answers, (request) => isInfo(request) && request.body.includes(name))
  changes.change(often)
  await reading.held
  reading.release()
  await deleteDb(name)
  report('created', name)
  report('deleted', name)
  await seen(name, ['created', 'deleted'])
  await sweepsPass(proxy)
  expect(await written(name)).toEqual(['created 1', 'deleted 1'])
})

test('a created event is not written before its note', async () => {
  const { proxy, plan, report, followed } = await startFeedByHand()
  const db = await freshDb('orders')
  plan((request) => (isNote(request) ? refuse(500) : undefined))
  const { seen, written } = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  await followed()
  report('created', db.name)
  await eventually(() => expect(proxy.requests.filter(isNote).length).toBeGreaterThan(1))
  expect(await written(db.name)).toEqual([])
  plan(() => undefined)
  await seen(db.name, ['created'])
})

test.each([
  { what: 'deleted', happens: (db: Database) => deleteDb(db.name), wanted: ['created 1', 'deleted 1'] },
  { what: 'created again', happens: makeAgain, wanted: ['created 2', 'deleted 1'] },
])('a database that is $what after the sidecar was killed gets the right events', async ({ happens, wanted }) => {
  needs('database identity')
  const { proxy, report, followed } = await startFeedByHand()
  const db = createTestCouch().db(uniqueName('orders'))
  const first = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  onTestFinished(() => deleteDb(db.name))
  await followed()
  await db.create()
  report('created', db.name)
  await first.seen(db.name, ['created'])
  await first.kill(proxy)
  await happens(db)
  const { proxy: by } = await startFeedByHand() // this feed has no row for the change
  const again = startGlobalChanges({ name: first.name, partition: only(db.name), by: by.url })
  await eventually(async () => expect(await again.written(db.name)).toEqual(wanted))
})

test.each([
  { how: 'deleted before the read', isGone: true, again: (db: Database) => nextSecond().then(() => createAgain(db)) },
  { how: 'falsely reported as deleted', isGone: false, again: makeAgain },
])('a new database $how, then created again without a sidecar, gets the right events', async ({ isGone, again }) => {
  needs('database identity')
  const { proxy, plan, report, followed } = await startFeedByHand()
  const db = createTestCouch().db(uniqueName('orders'))
  const first = startGlobalChanges({ partition: only(db.name), by: proxy.url })
  onTestFinished(() => deleteDb(db.name))
  await followed()
  await db.create()
  if (isGone) await deleteDb(db.name)
  else plan((request) => (isInfo(request) ? notFound : undefined))
  report('created', db.name)
  await first.seen(db.name, ['created'])
  await first.kill(proxy)
  await again(db)
  const { proxy: by } = await startFeedByHand() // this feed has no row for the change
  const second = startGlobalChanges({ name: first.name, partition: only(db.name), by: by.url })
  await eventually(async () => expect(await second.written(db.name)).toEqual(['created 2', 'deleted 1']))
})

test('the next event waits for the note that is being written', async () => {
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
