import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { retryAll, retryDocument, type Retried } from '../../../sidecar/docstate/operator/retry.ts'
import { countStates } from '../../../sidecar/docstate/operator/status.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { installDocstate } from '../install.ts'

const parked = (id: string) => ({
  ...{ _id: id, type: 'order', state: 'paid' },
  docstate: { state: 'paid', parked: { at: '2026-01-01T00:00:00.000Z', reason: 'lost' } },
})

const conflict = refuse(409, { error: 'conflict', reason: 'Document update conflict.' })
const writes = (id: string) => (request: SeenRequest) => request.method === 'PUT' && request.path.endsWith(`/${id}`)

/** Parked documents, and their database by way of a proxy. */
async function park(...ids: string[]) {
  const db = await freshDb('retry')
  await installDocstate(db, {})
  for (const id of ids) await db.put(parked(id))
  const proxy = await startFaultyProxy()
  return { db, proxy, proxied: createTestCouch({ url: proxy.url }).db(db.name) }
}

async function retryEach(database: Database): Promise<Retried[]> {
  const retried: Retried[] = []
  for await (const each of retryAll({ database, counts: await countStates(database) })) retried.push(each)
  return retried
}

test('one that somebody else writes at the same time does not stop the others, and is tried again', async () => {
  const { db, proxy, proxied } = await park('a', 'b', 'c')
  proxy.next(async (exchange) => {
    await db.put({ ...(await db.get('a')), note: 'by hand' })
    await conflict(exchange)
  }, writes('a'))
  expect((await retryEach(proxied)).map(({ kind, id }) => `${id} ${kind}`)).toEqual([
    'b retried',
    'c retried',
    'a retried',
  ])
  expect(await db.get('a')).toMatchObject({ note: 'by hand', docstate: { state: 'paid' } })
  expect(await countStates(db)).toEqual([{ type: 'order', state: 'paid', status: 'ready', count: 3 }])
})

test('one that has changed twice, or is not stuck any more, is told and left alone', async () => {
  const { db, proxy, proxied } = await park('a', 'b', 'c')
  proxy.plan((request) => (writes('a')(request) ? conflict : undefined))
  proxy.next(async (exchange) => {
    await db.put({ ...(await db.get('b')), state: 'shipped', docstate: undefined })
    await conflict(exchange)
  }, writes('b'))
  expect((await retryEach(proxied)).map(({ kind, id }) => `${id} ${kind}`)).toEqual([
    'c retried',
    'a changed',
    'b changed',
  ])
  expect(await db.get('b')).toMatchObject({ state: 'shipped' })
  expect(await retryDocument(proxied, 'a')).toEqual({ kind: 'changed', id: 'a' })
})

test('a document that waits for its next try keeps the end of its state; of one that was parked it begins anew', async () => {
  const [at, later] = ['2026-01-01T00:00:00.000Z', '2126-01-01T00:00:00.000Z']
  const db = await freshDb('retry')
  await db.put({ _id: 'a', type: 'order', state: 'paid', docstate: { state: 'paid', retry_at: at, timeout_at: later } })
  await db.put({ ...parked('b'), docstate: { ...parked('b').docstate, timeout_at: at } })
  for (const id of ['a', 'b']) expect(await retryDocument(db, id)).toMatchObject({ kind: 'retried' })
  expect((await db.get('a')).docstate).toEqual({ state: 'paid', timeout_at: later })
  expect((await db.get('b')).docstate).toEqual({ state: 'paid' })
})
