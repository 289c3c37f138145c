/** Several workers that visit the databases of one glob. */
import { expect, onTestFinished, test } from 'vitest'
import { createPartitioning, everything, type Partition } from '../../sidecar/workers/partitioning.ts'
import { createRendezvous } from '../../sidecar/workers/rendezvous.ts'
import { startRegistry } from '../workers/registries.ts'
import { createTestCouch, freshDb, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig } from './rig.ts'

const SOON = [300, 300] as const

/** Starts visits by a worker that shares the databases with other members until it leaves. */
async function startMember(prefix: string, members: Awaited<ReturnType<typeof freshDb>>, worker: string) {
  const registry = startRegistry(members)
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  registry.register('sidecar', worker, { timeoutMs: 10_000 }, leaving.signal)
  const partitioning = createPartitioning({
    registry,
    role: 'sidecar',
    self: worker,
    serves: () => true,
    signal: leaving.signal,
  })
  await partitioning.known
  const rig = startVisits(prefix, { worker, partitioning, lookAgainMs: SOON })
  return { ...rig, leave: () => leaving.abort() }
}

const unsafely: NonNullable<Parameters<typeof startVisits>[1]>['register'] = (control, handled) =>
  control.unsafe(
    'order',
    'paid',
    async (doc) => {
      handled.push(doc._id)
      return { ...doc, state: 'invoiced' }
    },
    { onLost: 'retry' },
  )

/** Names of databases of which each worker has three. */
function namesFor(prefix: string, workers: readonly string[]): string[] {
  const workerOf = createRendezvous(workers)
  const names = Array.from({ length: 100 }, (_, i) => `${prefix}-db-${i}`)
  return workers.flatMap((worker) => names.filter((name) => workerOf(name) === worker).slice(0, 3))
}

/** Waits until each rig has this many databases, and none of them is visited. */
const allAtRest = (rigs: readonly Rig[], databases: readonly number[]) =>
  eventually(() =>
    expect(rigs.map((rig) => rig.visited())).toMatchObject(
      databases.map((count) => ({ databases: count, open: 0, waiting: 0 })),
    ),
  )

test('two workers divide the databases, and when one leaves, the other continues from its checkpoints', async () => {
  const prefix = createPrefix()
  const members = await freshDb('members')
  const databases = await make({ couch: createTestCouch() }, ...namesFor(prefix, ['one', 'two']))
  for (const database of databases) await database.put(order('first'))
  const one = await startMember(prefix, members, 'one')
  const two = await startMember(prefix, members, 'two')
  await allAtRest([one, two], [3, 3])
  for (const database of databases) expect(await stateOf(database, 'first')).toBe('invoiced')

  const handledBefore = two.handled.length
  one.leave()
  await one.stop()
  for (const database of databases) await database.put(order('second'))
  await eventually(() => expect(two.handled.filter((id) => id === 'second')).toHaveLength(6))
  expect(two.handled.slice(handledBefore).filter((id) => id === 'first')).toEqual([])
  await allAtRest([two], [6])
})

test('a document read while its database belongs to another worker is still handled later', async () => {
  const prefix = createPrefix()
  let isOurs = true
  const part: Partition = { ...everything, isOurs: () => isOurs, isOursAnywhere: () => isOurs }
  const partitioning = { of: () => part, whole: () => part, known: Promise.resolve(), onChange: () => undefined }
  const rig = startVisits(prefix, { partitioning, lookAgainMs: [60_000, 60_000] })
  const [database] = await make(rig, `${prefix}-db-1`)
  await database!.put(order('first'))
  rig.report(database!.name, 'created')
  await eventually(async () => expect(await stateOf(database!, 'first')).toBe('invoiced'))
  expect(rig.visited().open).toBe(1)
  isOurs = false
  await database!.put(order('second'))
  rig.engines.get(database!.name)
  const { reads } = rig.visited()
  await eventually(() => expect(rig.visited().reads).toBeGreaterThan(reads))
  isOurs = true
  rig.report(database!.name)
  await eventually(async () => expect(await stateOf(database!, 'second')).toBe('invoiced'))
})

test('three workers that all own every database run unsafe handlers once', async () => {
  const prefix = createPrefix()
  const rigs = ['one', 'two', 'three'].map((worker) =>
    startVisits(prefix, { worker, register: unsafely, lookAgainMs: SOON }),
  )
  const databases = await make(rigs[0]!, ...Array.from({ length: 6 }, (_, i) => `${prefix}-db-${i}`))
  for (let i = 0; i < 2; i++) {
    for (const database of databases) await database.put(order(`order-${i}-${database.name}`))
    for (const rig of rigs) for (const { name } of databases) rig.report(name)
  }
  await eventually(() => expect(rigs.flatMap(({ handled }) => handled)).toHaveLength(12))
  for (const rig of rigs) await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  const all = rigs.flatMap(({ handled }) => handled)
  expect(new Set(all).size).toBe(12)
  expect(all).toHaveLength(12)
})

test('after CouchDB is killed and restarted, every document is handled once', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const prefix = createPrefix()
  const rig = startVisits(prefix, { url: server.url, register: unsafely, lookAgainMs: SOON })
  const databases = await make(rig, ...Array.from({ length: 10 }, (_, i) => `${prefix}-db-${i}`))
  for (let i = 0; i < 4; i++) for (const database of databases) await database.put(order(`${database.name}-${i}`))
  for (const { name } of databases) rig.report(name) // a slow listing delays the next one
  await eventually(() => expect(rig.handled.length).toBeGreaterThan(5))
  await server.restart()
  await eventually(() => expect(rig.handled).toHaveLength(40))
  expect(new Set(rig.handled).size).toBe(40)
  await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  for (const database of databases) expect(await stateOf(database, `${database.name}-3`)).toBe('invoiced')
})
