/** Handlers with `since: 'now'`, which take only later documents. */
import { expect, test } from 'vitest'
import { createByteBudget } from '../../../sidecar/core/byte-budget.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { Seq } from '../../../sidecar/couch/documents.ts'
import { changesAt } from '../../../sidecar/couch/shard-seqs.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import type { HandlerOptions } from '../../../sidecar/docstate/types.ts'
import { createAgain, createTestCouch, freshDb, needs, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { createPrefix, make, startVisits } from '../../databases/rig.ts'
import { createLatch, startRig, stateOf, type Rig } from '../rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

const order = (_id: string) => ({ _id, type: 'order', state: 'paid' })
const orders = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => JSON.stringify(order(`${prefix}${n}`)))

/** Creates a database with documents and a control database. CouchDB stores creation times in seconds. */
async function withOlder(count: number) {
  const [db, control] = [await freshDb('since'), await freshDb('since-control')]
  await db.bulk(orders(count, 'old'))
  await aSecond()
  return { db, control }
}

const aSecond = () => new Promise((resolve) => setTimeout(resolve, 1100))

/** Registers a handler that records the ids of its documents. */
function invoices(taken: string[], options: HandlerOptions = {}, until?: Promise<void>) {
  return (control: Control) =>
    control.safe(
      'order',
      'paid',
      async (doc) => {
        taken.push(doc._id)
        await until
        return { ...doc, state: 'invoiced' }
      },
      { since: 'now', ...options },
    )
}

/** Puts a document once the feed is up to date, and waits until the handler takes it. */
async function takes({ engine }: Rig, db: Database, taken: readonly string[], id: string) {
  await eventually(() => expect(engine.health().following).toBe(true))
  await db.put(order(id))
  await eventually(() => expect(taken).toContain(id))
}

test('the handler ignores older documents and takes new and changed documents', async () => {
  const { db, control } = await withOlder(700)
  const { _rev } = await db.get('old7')
  const taken: string[] = []
  const rig = await startRig(db, invoices(taken), { control, resyncMs: 500 })
  await takes(rig, db, taken, 'new')
  await db.put({ ...(await db.get('old3')), note: 'changed' })
  await eventually(() => expect(taken).toContain('old3'))
  await eventually(async () => expect(await stateOf(db, 'old3')).toBe('invoiced'))
  expect(taken.sort()).toEqual(['new', 'old3'])
  expect((await db.get('old7'))._rev).toBe(_rev)
})

test('a worker without a checkpoint takes documents that arrived while no worker ran', async () => {
  const { db, control } = await withOlder(20)
  const taken: string[] = []
  const rig = await startRig(db, invoices(taken), { control, worker: 'a' })
  await takes(rig, db, taken, 'first')
  await rig.stop()
  await db.bulk(orders(20, 'between'))
  await startRig(db, invoices(taken), { control, worker: 'b' })
  await eventually(() => expect(taken).toHaveLength(21))
  expect(taken.filter((id) => id.startsWith('old'))).toEqual([])
})

test('the handler takes all new documents of a backlog and no older ones', async () => {
  const { db, control } = await withOlder(100)
  const [taken, go] = [[] as string[], createLatch()]
  const rig = await startRig(db, invoices(taken, { concurrency: 4 }, go.opened), {
    ...{ control, byteBudget: createByteBudget(40_000) },
  })
  await takes(rig, db, taken, 'first')
  await db.bulk(orders(600, 'new'))
  await eventually(() => expect(rig.engine.lag().slowHandlers).toBe(1))
  go.open()
  await eventually(() => expect(taken).toHaveLength(601))
  expect(new Set(taken).size).toBe(601)
  expect(taken.filter((id) => id.startsWith('old'))).toEqual([])
})

test('the handler takes all documents of a database created after the handler', async () => {
  needs('database identity')
  const { db: older, control } = await withOlder(1)
  const taken: string[] = []
  const rig = await startRig(older, invoices(taken), { control })
  await takes(rig, older, taken, 'first')
  await rig.stop()
  await aSecond()
  const younger = await freshDb('since')
  await younger.bulk(orders(3, 'early'))
  await startRig(younger, invoices(taken), { control })
  await eventually(() => expect(taken).toHaveLength(4))
})

test('the recorded start sequence advances with handled documents, so that lists stay short', async () => {
  const { db, control } = await withOlder(5)
  const taken: string[] = []
  const rig = await startRig(db, invoices(taken), { control, resyncMs: 300 })
  await takes(rig, db, taken, 'first')
  const id = `since:order/paid@${db.name}`
  const { first } = await control.get<{ first: string }>(id)
  await db.bulk(orders(1500, 'new'))
  await eventually(() => expect(taken).toHaveLength(1501))
  await eventually(async () => expect(changesAt((await control.get<{ seq: Seq }>(id)).seq)).toBeGreaterThan(1500))
  await rig.stop()
  const back = await startRig(db, invoices(taken), { control, resyncMs: 300, worker: 'again' })
  await takes(back, db, taken, 'last')
  expect(taken).toHaveLength(1502)
  expect(await control.get(id)).toMatchObject({ first })
})

test('in a visited database, the handler takes documents written since the last visit', async () => {
  const prefix = createPrefix()
  const register = (control: Control) => control.safe('call', 'new', () => Promise.resolve())
  const before = startVisits(prefix, { lookAgainMs: HARDLY, register })
  const [db] = await make(before, `${prefix}-db-a`)
  await db!.bulk(orders(50, 'old'))
  await aSecond()
  before.report(db!.name, 'created')
  await eventually(() => expect(before.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))
  await before.stop()

  const control = before.couch.db(before.controlDb)
  const rig = startVisits(prefix, {
    ...{ control, lookAgainMs: HARDLY },
    register: (table, handled) => invoices(handled)(table),
  })
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))
  await db!.put(order('new'))
  rig.report(db!.name)
  await eventually(() => expect(rig.handled).toEqual(['new']))
  await rig.stop()
  await db!.put(order('between'))
  const next = startVisits(prefix, {
    ...{ control, lookAgainMs: HARDLY },
    register: (table, handled) => invoices(handled)(table),
  })
  await eventually(() => expect(next.handled).toEqual(['between']))
  await eventually(() => expect(next.visited()).toMatchObject({ open: 0, waiting: 0 }))
  expect(await stateOf(db!, 'old7')).toBe('paid')
})

test('the handler takes all documents of a recreated database', async () => {
  needs('database identity')
  const control = await freshDb('since-control')
  const db = createTestCouch().db(uniqueName('since'))
  await db.create()
  await db.bulk(orders(5, 'old'))
  const taken: string[] = []
  const rig = await startRig(db, invoices(taken), { control })
  await takes(rig, db, taken, 'first')
  await rig.stop()
  await aSecond()
  await db.drop()
  await createAgain(db)
  await db.bulk(orders(5, 'again'))
  await startRig(db, invoices(taken), { control })
  await eventually(() => expect(taken).toHaveLength(6))
  await db.drop()
})
