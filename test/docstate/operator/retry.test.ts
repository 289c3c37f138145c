import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { Doc } from '../../../sidecar/couch/documents.ts'
import {
  actOnAll,
  actOnOne,
  discard,
  retry,
  undoDiscard,
  type ActionResult,
} from '../../../sidecar/docstate/operator/actions.ts'
import { findDocuments, type Filter } from '../../../sidecar/docstate/operator/find.ts'
import { countDocuments } from '../../../sidecar/docstate/operator/count-documents.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { pass, refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { installDocstate } from '../install.ts'
import { docstateIn } from '../rig.ts'

const LONG_AGO = '2026-01-01T00:00:00.000Z'

const parked = (id: string) => ({
  ...{ _id: id, type: 'order', state: 'paid' },
  docstate: { state: 'paid', parked: { at: LONG_AGO, reason: 'lost' } },
})

const failed = (id: string, code: string, at = LONG_AGO) => ({
  ...{ _id: id, type: 'order', state: 'error', error: { code, reason: 'because', at } },
  docstate: { state: 'error', failed_in: 'paid', entry: '3-x', attempts: 20, done: ['m'] },
})

const waiting = (id: string) => ({
  ...{ _id: id, type: 'order', state: 'paid' },
  docstate: {
    ...{ state: 'paid', attempts: 2, failing_since: LONG_AGO, retry_at: '2126-01-01T00:00:00.000Z' },
    failure: { code: 'ECONNREFUSED', reason: 'refused', at: LONG_AGO },
  },
})

const conflict = refuse(409, { error: 'conflict', reason: 'Document update conflict.' })
const isBulk = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')
const writes = (id: string) => (request: SeenRequest) => request.method === 'PUT' && request.path.endsWith(`/${id}`)

/** Creates a database with these documents and reaches it through a proxy. */
async function setUp(...docs: readonly Doc[]) {
  const db = await freshDb('retry')
  await installDocstate(db, {})
  for (const doc of docs) await db.put(doc)
  const proxy = await startFaultyProxy()
  return { db, proxy, proxied: createTestCouch({ url: proxy.url }).db(db.name) }
}

async function actOn(database: Database, filter: Filter = {}, action = retry, limit = Infinity) {
  const results: ActionResult[] = []
  const options = { database, counted: await countDocuments(database), filter, now: Date.now(), action, limit }
  for await (const some of actOnAll(options)) results.push(...some)
  return results.map(({ kind, id }) => `${id} ${kind}`)
}

async function find(database: Database, filter: Filter = {}) {
  const found: string[] = []
  const options = { database, counted: await countDocuments(database), filter, now: Date.now() }
  for await (const some of findDocuments(options)) found.push(...some.map(({ standing }) => standing.id))
  return found.sort()
}

test('a bulk retry tries a document again after an edit conflict, and continues with the others', async () => {
  const { db, proxy, proxied } = await setUp(parked('a'), parked('b'), parked('c'))
  proxy.next(async (exchange) => {
    await db.put({ ...(await db.get('a')), note: 'by hand' })
    await pass(exchange)
  }, isBulk)
  expect(await actOn(proxied)).toEqual(['b done', 'c done', 'a done'])
  expect(await db.get('a')).toMatchObject({ note: 'by hand', docstate: { state: 'paid' } })
  expect((await countDocuments(db)).counts).toEqual([{ type: 'order', state: 'paid', status: 'ready', count: 3 }])
})

test('a bulk retry reports and skips a document that changed twice or is no longer stuck', async () => {
  const { db, proxy, proxied } = await setUp(parked('a'), parked('b'), parked('c'))
  proxy.plan((request) => (writes('a')(request) ? conflict : undefined))
  proxy.next(async (exchange) => {
    await db.put({ ...(await db.get('a')), note: 'by hand' })
    await db.put({ ...(await db.get('b')), state: 'shipped', docstate: undefined })
    await pass(exchange)
  }, isBulk)
  expect(await actOn(proxied)).toEqual(['c done', 'a changed', 'b changed'])
  expect(await db.get('b')).toMatchObject({ state: 'shipped' })
  expect(await actOnOne(proxied, 'a', retry)).toEqual({ kind: 'changed', id: 'a' })
})

test('a retry keeps the timeout of a waiting document and resets the timeout of a parked document', async () => {
  const later = '2126-01-01T00:00:00.000Z'
  const { db } = await setUp(
    { ...waiting('a'), docstate: { state: 'paid', retry_at: LONG_AGO, timeout_at: later } },
    { ...parked('b'), docstate: { ...parked('b').docstate, timeout_at: LONG_AGO } },
  )
  for (const id of ['a', 'b']) expect(await actOnOne(db, id, retry)).toMatchObject({ kind: 'done' })
  expect((await db.get('a')).docstate).toEqual({ state: 'paid', timeout_at: later })
  expect((await db.get('b')).docstate).toEqual({ state: 'paid' })
})

test('a search and a bulk retry cover the documents that match the filter', async () => {
  const soon = new Date(Date.now() - 60_000).toISOString()
  const others = [
    { _id: 'done', type: 'order', state: 'shipped' },
    { ...parked('mail'), type: 'mail' },
    { _id: 'own', type: 'order', state: 'error' },
  ]
  const { db } = await setUp(
    ...[parked('p'), failed('f1', 'smtp_535'), failed('f2', 'card_declined'), failed('new', 'smtp_535', soon)],
    ...[waiting('w'), ...others],
  )
  expect(await find(db)).toEqual(['f1', 'f2', 'mail', 'new', 'p', 'w'])
  expect(await find(db, { type: 'order', state: 'paid' })).toEqual(['f1', 'f2', 'new', 'p', 'w'])
  expect(await find(db, { code: 'smtp_535' })).toEqual(['f1', 'new'])
  expect(await find(db, { code: 'ECONNREFUSED' })).toEqual(['w'])
  expect(await find(db, { olderThanMs: 3_600_000 })).toEqual(['f1', 'f2', 'mail', 'p', 'w'])
  expect(await find(db, { statuses: ['parked', 'failed'], type: 'order' })).toEqual(['f1', 'f2', 'new', 'p'])
  expect(await find(db, { statuses: ['ready'] })).toEqual(['done', 'own'])
  expect(await find(db, { state: 'error' })).toEqual(['f1', 'f2', 'new'])
  expect(await actOn(db, { code: 'smtp_535' }, retry, 1)).toEqual(['f1 done'])
  expect(await actOn(db, { type: 'order' })).toEqual(['f2 done', 'new done', 'p done', 'w done'])
  expect(await find(db)).toEqual(['mail'])
})

test('a discarded document ends in error with the operator’s name, and a retry restores it', async () => {
  const { db } = await setUp(parked('p'), failed('f', 'smtp_535'), waiting('w'), {
    _id: 'r',
    type: 'order',
    state: 'paid',
  })
  const now = Date.now()
  const byAnn = () => discard({ by: 'ann', now, among: ['failed', 'parked', 'retry'] })
  expect(await actOn(db, {}, byAnn())).toEqual(['f done', 'p done', 'w done'])
  const at = new Date(now).toISOString()
  expect(await db.get('w')).toMatchObject({
    state: 'error',
    error: { code: 'discarded', reason: 'discarded by ann; before: ECONNREFUSED: refused', at },
    docstate: { failed_in: 'paid', discarded: { at, by: 'ann' } },
  })
  expect((await db.get('f')).error, 'the error stays').toMatchObject({ code: 'smtp_535' })
  expect(await find(db), 'not stuck any more').toEqual([])
  expect(await find(db, { statuses: ['discarded'] })).toEqual(['f', 'p', 'w'])
  expect(await actOnOne(db, 'f', byAnn())).toEqual({ kind: 'nothing-to-do', id: 'f', state: 'error' })
  expect(await actOnOne(db, 'r', byAnn())).toEqual({ kind: 'nothing-to-do', id: 'r', state: 'paid' })
  const { _rev } = await db.get('r')
  expect(await actOnOne(db, 'r', discard({ by: 'ann', now, among: ['ready'] }))).toMatchObject({ kind: 'done' })

  expect(await actOn(db, { statuses: ['discarded'] })).toEqual(['f done', 'p done', 'r done', 'w done'])
  expect(docstateIn(await db.get('f'))).toEqual({ state: 'paid', entry: '3-x', done: ['m'] })
  expect(docstateIn(await db.get('r')), 'the key stays the same').toEqual({ state: 'paid', entry: _rev })
  expect(await db.get('r')).not.toHaveProperty('error')
})

test('undoing a discard restores the documents of this discard only', async () => {
  const ready = { _id: 'r', type: 'order', state: 'paid' }
  const docs = [parked('p'), failed('f', 'smtp_535'), waiting('w'), ready, failed('other', 'x')]
  const { db } = await setUp(...docs)
  const before = new Map((await db.getMany(['p', 'f', 'w', 'r'])).map((doc) => [doc._id, doc]))
  const now = Date.now()
  const of = { at: new Date(now).toISOString(), by: 'ann' }
  const statuses = ['discarded'] as const
  await actOn(db, { code: 'x' }, discard({ by: 'bob', now, among: ['failed'] }))
  await actOn(db, {}, discard({ by: 'ann', now, among: ['failed', 'parked', 'retry'] }))
  await actOnOne(db, 'r', discard({ by: 'ann', now, among: ['ready'] }))
  const undo = undoDiscard({ by: 'eve', now: now + 1, of })
  expect(await actOn(db, { statuses }, undo)).toEqual(['f done', 'p done', 'r done', 'w done'])
  expect(await find(db, { statuses }), 'the document that Bob discarded').toEqual(['other'])
  expect(await actOnOne(db, 'f', undo)).toMatchObject({ kind: 'nothing-to-do' })
  for (const doc of await db.getMany([...before.keys()])) {
    const { _rev: _, docstate, ...fields } = doc
    const { _rev: rev, docstate: then, ...were } = before.get(doc._id)!
    expect(fields).toEqual(were)
    const { asked, entry, ...stands } = docstateIn(doc)!
    expect(asked).toEqual({ at: new Date(now + 1).toISOString(), by: 'eve' })
    if (doc._id === 'r') expect([stands, entry]).toEqual([{ state: 'paid' }, rev])
    else expect({ ...stands, entry }).toEqual({ ...(then as object), entry })
    expect(docstate).toBeDefined()
  }
  expect(await actOnOne(db, 'other', undoDiscard({ by: 'eve', now }))).toMatchObject({ kind: 'done', state: 'error' })
})

test('retry and discard do not change a claimed document', async () => {
  const claim = { worker: 'a', token: 't', at: LONG_AGO, lease_ms: 1000 }
  const { db } = await setUp({ _id: 'c', type: 'order', state: 'paid', docstate: { state: 'paid', claim } })
  const any = discard({ by: 'ann', now: Date.now(), among: ['claimed', 'ready'] })
  expect(await actOnOne(db, 'c', any)).toMatchObject({ kind: 'nothing-to-do' })
  expect(await actOnOne(db, 'c', retry)).toMatchObject({ kind: 'nothing-to-do' })
})
