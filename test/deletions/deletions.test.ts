/** Handlers for deleted documents: each deletion runs once, with the fields of the tombstone. */
import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { deletionTable } from '../../sidecar/deletions/deletion-table.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import type { DeletionOptions, Tombstone } from '../../sidecar/docstate/runs.ts'
import type { Context } from '../../sidecar/docstate/types.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, startVisits } from '../databases/rig.ts'
import { startRig } from '../docstate/rig.ts'

interface Start {
  readonly db: Database
  readonly control: Database
  readonly handler: (deleted: Tombstone, ctx: Context) => Promise<void>
  readonly options?: DeletionOptions
  readonly worker?: string
}

/** The engine of the database, and the engine of the control database, which stores the runs. */
async function start({ db, control, handler, options = {}, worker = 'one' }: Start) {
  const handlers = createControl<Machines>({})
  handlers.deleted('photo', handler, options)
  const table = deletionTable(handlers.deletions)
  const own = await startRig(db, () => undefined, { table: handlers, control, worker, resyncMs: 500 })
  const runs = await startRig(control, () => undefined, { table, machines: table.machines, worker, resyncMs: 500 })
  await eventually(() => expect(own.engine.rest()).toBeDefined())
  return { ...own, stop: () => Promise.all([own.stop(), runs.stop()]) }
}

const photo = (_id: string) => ({ _id, type: 'photo', state: 'listed', file: `${_id}.jpg` })

/** Deletes a document as an app does for a handler: the tombstone keeps its type. */
async function discard(db: Database, id: string) {
  const { _id, _rev, type, file } = await db.get(id)
  await db.put({ _id, _rev, type, file, _deleted: true })
}

async function databases() {
  const [db, control] = [await freshDb('deletions'), await freshDb('deletions-control')]
  for (const id of ['old', 'a', 'b', 'c', 'plain']) await db.put(photo(id))
  await discard(db, 'old')
  await new Promise((resolve) => setTimeout(resolve, 1100)) // CouchDB gives the creation time of a database in seconds
  return { db, control }
}

const statesIn = async (control: Database) => (await control.withPrefix('deletion:')).map(({ state }) => state)

test('the handler gets the tombstone’s fields and its database, and no deletions before its start', async () => {
  const { db, control } = await databases()
  const seen: unknown[] = []
  const handler = async (deleted: Tombstone, ctx: Context) => {
    await ctx.put({ _id: `note-${deleted._id}`, type: 'note' })
    seen.push([deleted._id, deleted.file, deleted._deleted, ctx.database, (await ctx.find('b'))?.file])
    await expect(ctx.save(deleted)).rejects.toThrow('expected ctx.put')
  }
  await start({ db, control, handler })
  await discard(db, 'a')
  await db.remove('plain', (await db.get('plain'))._rev) // the tombstone has no fields, not even a type
  await eventually(() => expect(seen).toEqual([['a', 'a.jpg', true, db.name, 'b.jpg']]))
  expect(await db.get('note-a')).toMatchObject({ type: 'note' })
  await eventually(async () => expect(await statesIn(control)).toEqual(['done']))
  await discard(db, 'b')
  await eventually(() => expect(seen).toHaveLength(2))
})

test('the next worker handles deletions made without a worker once, also without a checkpoint', async () => {
  const { db, control } = await databases()
  const seen: string[] = []
  const handler = (deleted: Tombstone) => Promise.resolve(void seen.push(deleted._id))
  const first = await start({ db, control, handler, worker: 'one' })
  await discard(db, 'a')
  await eventually(() => expect(seen).toEqual(['a']))
  await first.stop()
  await discard(db, 'b')
  await start({ db, control, handler, worker: 'two' })
  await eventually(() => expect(seen).toEqual(['a', 'b']))
  await start({ db, control, handler, worker: 'three' })
  await discard(db, 'c')
  await eventually(() => expect(seen).toEqual(['a', 'b', 'c']))
  await eventually(async () => expect(await statesIn(control)).toEqual(['done', 'done', 'done']))
  expect(seen).toHaveLength(3)
})

test('a failing handler is retried until its error, and a second deletion of the same id has its own run', async () => {
  const { db, control } = await databases()
  const seen: string[] = []
  const handler = (deleted: Tombstone) => {
    seen.push(deleted._id)
    return seen.length < 3 ? Promise.reject(new Error('the storage is away')) : Promise.resolve()
  }
  await start({ db, control, handler, options: { attempts: 2, backoff: { baseMs: 20, capMs: 20 } } })
  await discard(db, 'a')
  await eventually(async () => expect(await statesIn(control)).toEqual(['error']))
  await db.put(photo('a'))
  await discard(db, 'a')
  await eventually(async () => expect((await statesIn(control)).sort()).toEqual(['done', 'error']))
  expect(seen).toEqual(['a', 'a', 'a'])
})

test('deletions in visited databases are handled', async () => {
  const prefix = createPrefix()
  const control = await freshDb('deletions-control')
  const handlers = createControl<Machines>({})
  const seen: string[] = []
  handlers.deleted('photo', (deleted, ctx) => Promise.resolve(void seen.push(`${ctx.database} ${deleted._id}`)))
  const runs = deletionTable(handlers.deletions)
  await startRig(control, () => undefined, { table: runs, machines: runs.machines, resyncMs: 500 })
  const rig = startVisits(prefix, {
    ...{ control, lookAgainMs: [600_000, 600_000] },
    register: (table) => {
      table.safe('photo', 'listed', () => Promise.resolve())
      table.deleted('photo', handlers.deletions[0]!.handler)
    },
  })
  const [db] = await make(rig, `${prefix}-db-a`)
  await db!.put(photo('a'))
  rig.report(db!.name, 'created')
  const isAtRest = () => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 })
  await eventually(isAtRest)
  for (const id of ['a', 'b']) {
    if (id === 'b') await db!.put(photo(id))
    await discard(db!, id)
    rig.report(db!.name)
    await eventually(() => expect(seen).toContain(`${db!.name} ${id}`))
    await eventually(isAtRest)
  }
  expect(seen).toHaveLength(2)
})

test('thousands of deletions are handled', async () => {
  const { db, control } = await databases()
  let count = 0
  await start({ db, control, handler: () => Promise.resolve(void (count += 1)) })
  const ids = Array.from({ length: 1200 }, (_, n) => `p${n}`)
  await db.bulk(ids.map((id) => JSON.stringify(photo(id))))
  const docs = await db.getMany(ids)
  await db.bulk(docs.map(({ _id, _rev }) => JSON.stringify({ _id, _rev, type: 'photo', _deleted: true })))
  await eventually(() => expect(count).toBe(1200))
})

test.each([
  [{ since: 'now' }, 'there is no option since'],
  [{ key: () => 'x' }, 'there is no option key'],
  [{ attempts: 0 }, 'attempts: expected a whole number of at least 1, got 0'],
])('invalid options of a deletion handler are refused: %j', (options, named) => {
  const control = createControl<Machines>({})
  const register = () => control.deleted('photo', () => Promise.resolve(), options as DeletionOptions)
  expect(register).toThrow(named)
  expect(register).toThrow('the handler for deletions of photo')
})

test('a type has one deletion handler, and needs a machine if the database has machines', () => {
  const control = createControl<Machines>({ photo: { listed: {} } })
  const register = (type: string) => () => control.deleted(type, () => Promise.resolve())
  register('photo')()
  expect(register('photo')).toThrow('two handlers for deletions of photo: expected one')
  expect(register('foto')).toThrow('got foto (did you mean photo?)')
})
