/** Claims stored below the quorum, one case at a time. `contested.cluster.test.ts` makes hundreds of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { thoroughTest } from '../../support/thorough.ts'
import { takingOut } from '../../../sidecar/docstate/claims/rivals.ts'
import { docstateIn, startRig, stateOf } from '../rig.ts'
import { accepted, acceptedOf, answer } from './accepted.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const OURS = '8'.repeat(32)

/** Writes a conflicting revision, as replication does. */
const branch = (db: Database, doc: object, parent: StoredDoc, hash: string) => {
  const generation = parseInt(parent._rev) + 1
  const ids = [hash, parent._rev.slice(parent._rev.indexOf('-') + 1)]
  const leaf = { ...doc, _id: parent._id, _rev: `${generation}-${hash}`, _revisions: { start: generation, ids } }
  return db.merge([leaf])
}

const claimOf = (base: StoredDoc) => ({
  state: 'paid',
  entry: base._rev,
  claim: { worker: 'other', token: 'other', at: new Date(0).toISOString(), lease_ms: 30_000 },
})

/**
 * Starts a worker whose first claim is stored below the quorum as revision 2-888…, beside another worker's claim
 * with this hash.
 */
async function contest(theirs: string, leaseMs = 30_000) {
  const db = await freshDb('contest')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  const base = await db.get('o')
  const ran: string[] = []
  proxy.next(async (exchange) => {
    const { docs } = JSON.parse(exchange.request.body) as { docs: [StoredDoc] }
    await branch(db, { ...base, docstate: claimOf(base) }, base, theirs)
    await branch(db, docs[0], base, OURS)
    await exchange.send(answer([{ ok: true, id: 'o', rev: `2-${OURS}`, accepted: true }]))
    exchange.end()
  }, isBulk)
  await startRig(
    through,
    (control) =>
      control.unsafe('order', 'paid', async (doc) => {
        ran.push(doc._rev)
        return { ...doc, state: 'invoiced' }
      }),
    { leaseMs, graceMs: 500 },
  )
  await eventually(async () => expect(await db.leaves('o')).toHaveLength(2))
  return { db, ran, theirs: await db.get('o', { rev: `2-${theirs}` }) }
}

const livingOf = async (db: Database) =>
  (await db.leaves('o')).filter(({ _deleted }) => !_deleted).map(({ _rev }) => _rev)

test('a worker runs nothing and stops writing if every claim is stored below the quorum', async () => {
  const db = await freshDb('contest')
  const proxy = await startFaultyProxy()
  let ran = 0
  await startRig(createTestCouch({ url: proxy.url }).db(db.name), (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      ran += 1
      return { ...doc, state: 'invoiced' }
    }),
  )
  proxy.plan((request) => (isBulk(request) ? accepted : undefined))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('o'))?.claim).toBeDefined())
  await sleep(2000)
  expect(proxy.requests.filter(isBulk).length).toBeLessThan(15)
  expect(ran).toBe(0)
  proxy.plan(() => undefined)
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(ran).toBe(1)
})

test('the losing revision of two claims below the quorum is removed at once', async () => {
  const { db, ran } = await contest('f'.repeat(32))
  await eventually(async () => expect(await livingOf(db)).toEqual([`2-${'f'.repeat(32)}`]))
  expect(ran).toEqual([])
})

test('the winning revision of two claims waits, and is removed if the other worker saved a result', async () => {
  const { db, ran, theirs } = await contest('0'.repeat(32))
  await sleep(1000)
  expect(await livingOf(db)).toHaveLength(2)
  await branch(db, { type: 'order', state: 'invoiced', by: 'the other' }, theirs, '1'.repeat(32))
  await eventually(async () => expect(await livingOf(db)).toEqual([`3-${'1'.repeat(32)}`]))
  expect(ran).toEqual([])
})

test('a waiting claim wins if the other claim is released, and its handler runs once', async () => {
  const { db, ran, theirs } = await contest('0'.repeat(32))
  const yielded = { ...claimOf(theirs), yielded: true }
  await branch(db, { _deleted: true, state: 'paid', docstate: yielded }, theirs, '1'.repeat(32))
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(ran).toHaveLength(1)
  expect(await db.get('o', { conflicts: true })).not.toHaveProperty('_conflicts')
})

test('a waiting claim is removed if the other worker’s handler deleted the document', async () => {
  const { db, ran, theirs } = await contest('0'.repeat(32))
  await branch(db, { _deleted: true }, theirs, '1'.repeat(32))
  await eventually(async () => expect(await livingOf(db)).toEqual([]))
  expect(ran).toEqual([])
})

thoroughTest('a claim that waited nine tenths of its lease does not win if the other claim is released', async () => {
  const { db, ran, theirs } = await contest('0'.repeat(32), 3000)
  await sleep(2750) // after this time, a third worker may consider the other claim dead
  const yielded = { ...claimOf(theirs), yielded: true }
  await branch(db, { _deleted: true, state: 'paid', docstate: yielded }, theirs, '1'.repeat(32))
  await eventually(async () => expect(docstateIn(await db.get('o'))).toHaveProperty('parked'))
  expect(ran).toEqual([])
})

test('documents without a quorum do not delay documents with a quorum', async () => {
  const db = await freshDb('contest')
  const proxy = await startFaultyProxy()
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) => control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced' }), { concurrency: 2 }),
    { graceMs: 300 },
  )
  proxy.plan((request) => (isBulk(request) ? acceptedOf((id) => id.startsWith('bad')) : undefined))
  await db.put({ _id: 'first', type: 'order', state: 'paid' })
  // After the first run, the worker claims documents ahead.
  await eventually(async () => expect(await stateOf(db, 'first')).toBe('invoiced'))
  await db.bulk(Array.from({ length: 120 }, (_, i) => JSON.stringify({ _id: `bad${i}`, type: 'order', state: 'paid' })))
  await eventually(async () => expect(docstateIn(await db.get('bad99'))?.claim).toBeDefined())
  await db.put({ _id: 'good', type: 'order', state: 'paid' })
  // This would never happen if the document waited for the bad ones.
  await eventually(async () => expect(await stateOf(db, 'good')).toBe('invoiced'))
})

test('a waiting claim does not win if a merge removed the other, whose handler may have run', async () => {
  const { db, ran, theirs } = await contest('0'.repeat(32))
  const leaf = (await db.leaves('o')).find(({ _rev }) => _rev === theirs._rev)!
  await db.merge(takingOut([leaf], [], 'merged'))
  await sleep(3000)
  expect(ran).toEqual([])
  expect(await livingOf(db)).toEqual([`2-${OURS}`]) // the only leaf must not be removed
})

test('a waiting worker does not run a document whose winning claim belongs to a dead worker', async () => {
  const db = await freshDb('contest')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  const base = await db.get('o')
  const leaseMs = 1500
  const won = claimOf(base)
  proxy.next(async (exchange) => {
    const { docs } = JSON.parse(exchange.request.body) as { docs: [StoredDoc] }
    await branch(
      db,
      { ...base, docstate: { ...won, claim: { ...won.claim, lease_ms: leaseMs } } },
      base,
      '0'.repeat(32),
    )
    await branch(db, docs[0], base, OURS)
    await exchange.send(answer([{ ok: true, id: 'o', rev: `2-${OURS}`, accepted: true }]))
    exchange.end()
  }, isBulk)
  const ran: string[] = []
  const start = (worker: string, database: Database) =>
    startRig(
      database,
      (control) =>
        control.unsafe('order', 'paid', async (doc) => {
          ran.push(worker)
          return { ...doc, state: 'invoiced' }
        }),
      { worker, leaseMs },
    )
  await start('waits', through)
  await eventually(async () => expect(await db.leaves('o')).toHaveLength(2))
  await start('resolves', db)
  await eventually(async () => expect(docstateIn(await db.get('o'))?.parked).toBeDefined())
  expect(await db.get('o', { conflicts: true })).not.toHaveProperty('_conflicts')
  expect(ran).toEqual([])
})
