/** Reads that return an old version of a document. */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type Fault, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { everything } from '../../../sidecar/workers/partitioning.ts'
import { inject, isInfo, ofThreeCopies, rewritten } from '../../support/faults.ts'
import { createLatch, startRig, stateOf } from '../rig.ts'

/** Delays the answer by a second, so that its content is a second old. */
const answeredLate: Fault = async (exchange) => {
  const answer = await exchange.forward()
  async function* late() {
    for await (const chunk of answer.body) {
      await sleep(1000)
      yield chunk
    }
  }
  await exchange.send({ ...answer, body: Readable.from(late()) })
  exchange.end()
}

const isRead = ({ path, body }: SeenRequest) => /_bulk_get|_all_docs/.test(path) && body.includes('"o"')

/** Resolves when the first resync is done. */
const untilResynced = ({ requests }: FaultyProxy) =>
  eventually(() => expect(requests.some(({ path }) => path.endsWith('/_view/conflicts'))).toBe(true))

test('a document that is handled during a slow read is not handled again', async () => {
  const db = await freshDb('stale')
  const proxy = await startFaultyProxy()
  let runs = 0
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.safe(
        'order',
        'paid',
        (doc) => {
          runs += 1
          if (runs > 1) return Promise.resolve({ ...doc, state: 'invoiced' })
          proxy.next(answeredLate, isRead)
          return Promise.reject(new Error('not yet'))
        },
        // Later than the feed's row of the failure, which would also cause an attempt.
        { backoff: { baseMs: 1000, capMs: 1000 } },
      ),
    { random: () => 0.9 },
  )
  await untilResynced(proxy)
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(() => expect(proxy.requests.filter(isRead)).toHaveLength(1)) // the second attempt is due
  await db.put({ ...(await db.get('o')), note: 'an edit, which the feed brings' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await sleep(1500)
  expect(runs).toBe(2)
})

test('a row of the feed that is older than the resync is ignored', async () => {
  const db = await freshDb('stale')
  const proxy = await startFaultyProxy()
  const runs: string[] = []
  const { engine } = await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.safe('order', 'paid', (doc) => {
        runs.push(doc._id)
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
    { resyncMs: 200 },
  )
  await db.put({ _id: 'first', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'first')).toBe('invoiced'))
  const written = createLatch()
  proxy.next(
    async (exchange) => {
      await written.opened
      await answeredLate(exchange)
    },
    ({ path }) => path.includes('/_changes'),
  )
  proxy.dropConnections()
  await eventually(() => expect(engine.health().following).toBe(false))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  written.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await db.put({ _id: 'last', type: 'order', state: 'shipped' })
  await eventually(() => expect(engine.health().following).toBe(true))
  await sleep(1500)
  expect(runs).toEqual(['first', 'o'])
})

/** Answers a read as copies do that lack the document, or that have only this older revision. */
const answeredByOthers = (older?: StoredDoc): Fault =>
  rewritten((text) => {
    const missing = { error: { id: 'o', rev: 'undefined', error: 'not_found', reason: 'missing' } }
    const row = older ? { id: 'o', key: 'o', value: { rev: older._rev }, doc: older } : { key: 'o', error: 'not_found' }
    return JSON.stringify(
      text.includes('"results"')
        ? { results: [{ id: 'o', docs: [older ? { ok: older } : missing] }] }
        : { rows: [row] },
    )
  })

/** Answers reads as `fault` does, in a cluster of three. */
const inCluster = (fault: Fault) => (request: SeenRequest) =>
  isRead(request) ? fault : isInfo(request) ? ofThreeCopies : undefined

/** A resync comes too late to find the document. */
const RARELY = { resyncMs: 3_600_000 }

/** A rig whose handler fails at first, calls `onFailed` then, and succeeds after the backoff. */
async function startFailingOnce(backoffMs: number, onFailed: (proxy: FaultyProxy) => void = () => undefined) {
  const db = await freshDb('stale')
  const proxy = await startFaultyProxy()
  const runs: string[] = []
  const handler = (doc: StoredDoc) => {
    runs.push(doc._rev)
    if (runs.length > 1) return Promise.resolve({ ...doc, state: 'invoiced' })
    onFailed(proxy)
    return Promise.reject(new Error('not yet'))
  }
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) => control.unsafe('order', 'paid', handler, { backoff: { baseMs: backoffMs, capMs: backoffMs } }),
    { ...RARELY, random: () => 0.9 },
  )
  await untilResynced(proxy)
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  return { db, proxy, runs }
}

test('a due document is handled although the copies that answer lack it', async () => {
  const { db, proxy, runs } = await startFailingOnce(1000, (proxy) => proxy.plan(inCluster(answeredByOthers())))
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(proxy.requests.some(isRead)).toBe(true)
  expect(runs).toHaveLength(2)
})

test.each(['lack the document', 'have an older revision'])(
  'a document of the feed is handled although the copies that answer %s',
  async (what) => {
    const db = await freshDb('stale')
    const proxy = await startFaultyProxy()
    const runs: string[] = []
    await startRig(
      createTestCouch({ url: proxy.url }).db(db.name),
      (control) =>
        control.safe('order', 'paid', (doc) => {
          runs.push(doc._rev)
          return Promise.resolve({ ...doc, state: 'invoiced' })
        }),
      { ...RARELY, partition: { ...everything, hasEquals: () => true } }, // rows come without documents
    )
    await untilResynced(proxy)
    await db.put({ _id: 'o', type: 'order', state: 'draft' })
    await eventually(() => expect(proxy.requests.some(isRead)).toBe(true))
    const draft = await db.get('o')
    const reads = proxy.requests.filter(isRead).length
    proxy.plan(inCluster(answeredByOthers(what.startsWith('have') ? draft : undefined)))
    const paid = await db.put({ ...draft, state: 'paid' })
    await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
    expect(proxy.requests.filter(isRead).length).toBeGreaterThan(reads)
    expect(runs).toEqual([paid])
  },
)

test('a row from a copy without the living branch does not make the worker forget a due document', async () => {
  const { db, proxy, runs } = await startFailingOnce(3000)
  await eventually(async () => expect((await db.get('o')).docstate).toHaveProperty('retry_at'))
  const { update_seq } = await db.info()
  const row = JSON.stringify({ seq: update_seq, id: 'o', changes: [{ rev: `9-${'f'.repeat(32)}` }], deleted: true })
  proxy.next(inject(`${row}\n`), ({ query }) => query.get('feed') === 'continuous')
  proxy.dropConnections()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(runs).toHaveLength(2)
})

test('a due document is handled although a copy still shows a resolved conflict', async () => {
  const withOldBranch = rewritten((text) => {
    const answer = JSON.parse(text) as { results?: { docs: { ok: StoredDoc }[] }[]; rows?: { doc: StoredDoc }[] }
    const rev = `1-${'0'.repeat(32)}`
    for (const { docs } of answer.results ?? []) docs.push({ ok: { ...docs[0]!.ok, _rev: rev } })
    for (const { doc } of answer.rows ?? []) Object.assign(doc, { _conflicts: [rev] })
    return JSON.stringify(answer)
  })
  const { db, runs } = await startFailingOnce(1000, (proxy) => proxy.next(withOldBranch, isRead))
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(runs).toHaveLength(2)
})
