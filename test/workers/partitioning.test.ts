/** Engines that share the documents of one database. */
import { setTimeout as sleep } from 'node:timers/promises'
import { viewOf } from '../support/answers.ts'
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Registry } from '../../sidecar/workers/registry.ts'
import { createRendezvous } from '../../sidecar/workers/rendezvous.ts'
import { createPartitioning } from '../../sidecar/workers/partitioning.ts'
import { expectSettled, paid, replicate } from '../docstate/conflicts/branches.ts'
import { startRig, stateOf, type RigOptions } from '../docstate/rig.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { startRegistry } from './registries.ts'

interface Worker {
  readonly name: string
  readonly handled: string[]
  readonly registry: Registry
  stop(): Promise<void>
}

type WorkerOptions = RigOptions & { readonly timeoutMs?: number }

/** A worker with a handler for paid orders. */
async function startWorker(db: Database, name: string, options: WorkerOptions = {}): Promise<Worker> {
  const { timeoutMs = 10_000, ...rest } = options
  const registry = startRegistry(db)
  const leaving = new AbortController()
  registry.register('sidecar', name, { timeoutMs }, leaving.signal)
  const partitioning = createPartitioning({
    registry,
    role: 'sidecar',
    self: name,
    serves: () => true,
    signal: leaving.signal,
  })
  await partitioning.known
  const handled: string[] = []
  const rig = await startRig(
    db,
    (control) =>
      control.unsafe(
        'order',
        'paid',
        async (doc) => {
          handled.push(doc._id)
          return { ...doc, state: 'invoiced' }
        },
        { onLost: 'retry' },
      ),
    { worker: name, partition: partitioning.of(db.name), leaseMs: 10_000, ...rest },
  )
  return {
    name,
    handled,
    registry,
    async stop() {
      leaving.abort(new Error('the worker stops'))
      await rig.stop()
    },
  }
}

async function seeEachOther(workers: readonly Worker[]): Promise<void> {
  await eventually(() => {
    for (const { registry } of workers) expect(registry.members('sidecar')?.members).toHaveLength(workers.length)
  })
}

/** No claim is renewed, and no resync runs. */
const quiet = { leaseMs: 30_000, resyncMs: 60_000 }

const idsOf = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `o${from + i}`)

async function writeOrders(db: Database, ids: readonly string[]): Promise<void> {
  await db.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
}

const expectInvoiced = (db: Database, count: number) =>
  eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
    expect(rows).toContainEqual({ key: ['order', 'invoiced'], value: count })
  })

test('each document is claimed by the worker of its partition, without a lost claim', async () => {
  const db = await freshDb('partitioning')
  const workers = [
    await startWorker(db, 'a', quiet),
    await startWorker(db, 'b', quiet),
    await startWorker(db, 'c', quiet),
  ]
  await seeEachOther(workers)
  const ids = idsOf(0, 300)
  await writeOrders(db, ids)
  await expectInvoiced(db, 300)
  const workerOf = createRendezvous(['a', 'b', 'c'])
  for (const { name, handled } of workers) {
    expect(handled.sort()).toEqual(ids.filter((id) => workerOf(id) === name).sort())
    expect(handled.length).toBeGreaterThan(60)
  }
  for (const doc of await db.getMany(ids)) expect(doc._rev).toMatch(/^3-/)
})

test('a joining worker takes its partition, and the others take a leaving worker’s documents at once', async () => {
  const db = await freshDb('partitioning')
  const first = await startWorker(db, 'a')
  await writeOrders(db, idsOf(0, 50))
  await expectInvoiced(db, 50)
  const second = await startWorker(db, 'b')
  await seeEachOther([first, second])
  await writeOrders(db, idsOf(50, 150))
  await expectInvoiced(db, 150)
  expect(second.handled.length).toBeGreaterThan(25)
  await first.stop()
  await writeOrders(db, idsOf(150, 200))
  await expectInvoiced(db, 200)
  expect(first.handled.length + second.handled.length).toBe(200)
})

test('the other workers take the partition of a worker that is cut off', async () => {
  const db = await freshDb('partitioning')
  const proxy = await startFaultyProxy()
  const [cutOff, other] = [
    await startWorker(createTestCouch({ url: proxy.url }).db(db.name), 'a', { timeoutMs: 1000 }),
    await startWorker(db, 'b'),
  ]
  await seeEachOther([cutOff, other])
  await proxy.down()
  await writeOrders(db, idsOf(0, 100))
  await expectInvoiced(db, 100)
  expect(other.handled).toHaveLength(100)
  await proxy.up()
  expect(cutOff.handled).toEqual([])
})

test('the second resync takes the documents of a worker that is alive but idle', async () => {
  const db = await freshDb('partitioning')
  const idler = startRegistry(db)
  idler.register('sidecar', 'a', { timeoutMs: 10_000 })
  const worker = await startWorker(db, 'b', { resyncMs: 500 })
  await eventually(() => expect(worker.registry.members('sidecar')?.members).toHaveLength(2))
  await writeOrders(db, idsOf(0, 50))
  await expectInvoiced(db, 50)
  expect(idler.members('sidecar')?.members).toHaveLength(2)
})

test('a due retry runs on the worker whose partition has the document at that time', async () => {
  const db = await freshDb('partitioning')
  const tries: string[] = []
  const failOnce = async (name: string) => {
    const worker = await startWorker(db, name)
    await startRig(
      db,
      (control) =>
        control.safe(
          'mail',
          'new',
          async (doc) => {
            tries.push(`${name} ${doc._id}`)
            if (tries.length < 3) throw new Error('not yet')
            return { ...doc, state: 'sent' }
          },
          { backoff: { baseMs: 100, capMs: 100 } },
        ),
      { worker: name, partition: partitionOf(worker, db) },
    )
    return worker
  }
  const workers = [await failOnce('a'), await failOnce('b')]
  await seeEachOther(workers)
  await db.put({ _id: 'm', type: 'mail', state: 'new' })
  await eventually(async () => expect(await stateOf(db, 'm')).toBe('sent'))
  const name = createRendezvous(['a', 'b'])('m')!
  expect(tries).toEqual([`${name} m`, `${name} m`, `${name} m`])
})

function partitionOf({ registry, name }: Worker, db: Database) {
  const signal = new AbortController().signal
  return createPartitioning({ registry, role: 'sidecar', self: name, serves: () => true, signal }).of(db.name)
}

test('a single worker reads documents with the feed, and several workers each read their own partition once', async () => {
  const db = await freshDb('partitioning')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const isFeed = ({ path }: SeenRequest) => path.endsWith('/_changes')
  const feeds = () => proxy.requests.filter(isFeed)
  const alone = await startWorker(through, 'a')
  await eventually(() => expect(feeds().at(-1)?.query.get('include_docs')).toBe('true'))
  await alone.stop()

  const workers = [await startWorker(db, 'b', quiet), await startWorker(through, 'c', quiet)]
  await seeEachOther(workers)
  proxy.dropConnections() // the next feed opens with the current membership
  await eventually(() => expect(feeds().at(-1)?.query.get('include_docs')).toBeNull())
  const viewRequests = () => proxy.requests.filter(({ path }) => path.includes('/_view/')).length
  // Waits for the end of the first resync.
  for (let seen = -1; seen !== viewRequests() || seen === 0; await sleep(1000)) seen = viewRequests()
  const before = proxy.requests.length
  await writeOrders(db, idsOf(0, 200))
  await expectInvoiced(db, 200)
  const [, second] = workers
  const read = proxy.requests
    .slice(before)
    .filter(({ path, method }) => method === 'POST' && /_bulk_get|_all_docs/.test(path))
    .flatMap(({ body }) => {
      const { keys, docs } = JSON.parse(body) as { keys?: string[]; docs?: { id: string }[] }
      return keys ?? docs!.map(({ id }) => id)
    })
  expect([...new Set(read)].sort()).toEqual(second!.handled.sort())
  // The feed row of a save may arrive before the answer to the save. Then the worker reads that document again.
  expect(read.length - second!.handled.length, 'documents that were read again').toBeLessThan(10)
  expect(second!.handled.length).toBeGreaterThan(40)
})

test('workers that share a database learn from the feed about a branch that CouchDB hides', async () => {
  const db = await freshDb('partitioning')
  const workers = [await startWorker(db, 'b', quiet), await startWorker(db, 'c', quiet)]
  await seeEachOther(workers)
  const first = await db.put(paid)
  await eventually(async () => expect(await stateOf(db, paid._id)).toBe('invoiced'))
  await replicate(db, first, 1, { ...paid, note: 'device' })
  await expectSettled(db, { state: 'invoiced', note: 'device' })
  expect(workers.flatMap(({ handled }) => handled)).toEqual([paid._id])
})

test('workers with different handlers read documents with the feed, and each handles its own types', async () => {
  const db = await freshDb('partitioning')
  const { registry } = await startWorker(db, 'a')
  const other = await startWorker(db, 'b')
  registry.register('sidecar', 'a', { timeoutMs: 10_000, does: 'something else' })
  await eventually(() =>
    expect(other.registry.members('sidecar')?.members[0]?.options).toEqual({ does: 'something else' }),
  )
  await writeOrders(db, idsOf(0, 50))
  await expectInvoiced(db, 50)
})
