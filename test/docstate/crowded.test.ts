import { expect, test } from 'vitest'
import { Semaphore } from '../../sidecar/core/semaphore.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import type { Claim } from '../../sidecar/docstate/types.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, silence, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { thoroughTest } from '../support/thorough.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const isBulk = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')
const hasClaim = ({ body }: SeenRequest) =>
  (JSON.parse(body) as { docs: StoredDoc[] }).docs.some((doc) => docstateIn(doc)?.claim)

thoroughTest(
  'when writes of many databases compete, results are written before new claims and no claim expires',
  async () => {
    const proxy = await startFaultyProxy()
    const couch = createTestCouch({ url: proxy.url, connections: 1 })
    const turns = new Semaphore(() => 1)
    const databases = await Promise.all(Array.from({ length: 20 }, () => freshDb('crowded')))
    for (const db of databases) {
      await startRig(
        couch.db(db.name),
        (control) => control.unsafe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'invoiced' })),
        { turns, leaseMs: 6000 },
      )
    }
    // All claims together take longer than a claim stays valid without renewal.
    proxy.plan((request) => (isBulk(request) ? delay(250) : undefined))
    const from = proxy.requests.length
    await Promise.all(databases.map((db) => db.put({ _id: 'o', type: 'order', state: 'paid' })))
    await eventually(async () => {
      const docs = await Promise.all(databases.map((db) => db.get('o')))
      expect(docs.map(({ state }) => state)).toEqual(docs.map(() => 'invoiced'))
      for (const { _rev } of docs) expect(_rev).toMatch(/^3-/) // one claim and one result
    })
    let open = 0
    const claimed = proxy.requests
      .slice(from)
      .filter(isBulk)
      .map((request) => (open += hasClaim(request) ? 1 : -1))
    expect(claimed).toHaveLength(40)
    expect(Math.max(...claimed)).toBeLessThanOrEqual(3)
  },
)

test('a save during an edit by a client does not wait for a slow request', async () => {
  const db = await freshDb('crowded')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 2, kept: 1 })
  const [began, go, ending] = [createLatch(), createLatch(), new AbortController()]
  await startRig(couch.db(db.name), (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      began.open()
      await go.opened
      return { ...doc, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await began.opened
  proxy.plan(({ path }) => (path === '/_all_dbs' ? silence : undefined))
  const slow = couch.request({ path: '_all_dbs', signal: ending.signal }).catch(() => undefined)
  await db.put({ ...(await db.get('o')), note: 'by hand' })
  go.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(await db.get('o')).toMatchObject({ note: 'by hand' })
  ending.abort(new Error('it was slow'))
  await slow
})

test('edited documents in an unresponsive database do not delay the renewals of another database', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 8, kept: 2 })
  const options = { turns: new Semaphore(() => 6), leaseMs: 6000 }
  const [silent, other] = [await freshDb('silent'), await freshDb('other')]
  const [go, end] = [createLatch(), createLatch()]
  const began: string[] = []
  const lost: unknown[] = []
  const handle = (until: Promise<void>) => (control: Control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      ctx.signal.addEventListener('abort', () => lost.push(doc._id))
      began.push(doc._id)
      await until
      return { ...doc, state: 'invoiced' }
    })
  await startRig(couch.db(silent.name), handle(go.opened), options)
  await startRig(couch.db(other.name), handle(end.opened), options)
  const ids = Array.from({ length: 20 }, (_, i) => `o${i}`)
  await silent.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  await other.put({ _id: 'kept', type: 'order', state: 'paid' })
  await eventually(() => expect(began).toHaveLength(21))

  const isRead = ({ path, query }: SeenRequest) => path.startsWith(`/${silent.name}/`) && query.has('open_revs')
  proxy.plan((request) => (isRead(request) ? silence : undefined))
  for (const id of ids) {
    // A renewal may cause an edit conflict.
    await eventually(async () => silent.put({ ...(await silent.get(id)), note: 'by hand' }))
  }
  go.open()
  const claims = new Set<unknown>()
  await eventually(async () => {
    claims.add((docstateIn(await other.get('kept'))?.claim as Claim).at)
    expect(claims.size).toBeGreaterThan(6) // the renewals last longer than one claim is valid
  })
  expect(lost).not.toContain('kept')
  end.open()
  await eventually(async () => expect(await stateOf(other, 'kept')).toBe('invoiced'))
  proxy.plan(() => undefined)
})
