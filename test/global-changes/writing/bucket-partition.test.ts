import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { bucketOf } from '../../../sidecar/global-changes/writing/ledger.ts'
import { partitionBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import { createNamePartition } from '../../../sidecar/workers/name-partition.ts'
import { createTestCouch, freshDb, needs, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { idsIn, startRegistry } from '../../workers/registries.ts'
import { startGlobalChanges, startServerWithFeed } from './rig.ts'

const role = 'mill'

/** One of several workers. `leaves` unregisters it. */
function startWorker(control: Awaited<ReturnType<typeof freshDb>>, self: string, options = {}) {
  const registry = startRegistry(control)
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const takesPart = (member: { options: unknown }) => (member.options as { writes?: boolean }).writes !== false
  registry.register(role, self, { timeoutMs: 10_000, ...options }, leaving.signal)
  const { signal } = leaving
  const partition = partitionBuckets(createNamePartition({ registry, role, self, takesPart, signal }), signal)
  return { registry, partition, leave: () => leaving.abort(), members: () => idsIn(registry, role) }
}

test('each bucket belongs to exactly one writing worker, and others take a leaving worker’s buckets', async () => {
  const control = await freshDb('control')
  const [one, other] = [startWorker(control, 'one'), startWorker(control, 'other')]
  startWorker(control, 'idle', { writes: false })
  await Promise.all([one.partition.known, other.partition.known])
  await eventually(() => expect([one.members(), other.members()]).toEqual([expect.anything(), one.members()]))
  await eventually(() => expect(one.members()).toHaveLength(3))
  await eventually(() => {
    const [ones, others] = [one.partition.buckets(), other.partition.buckets()]
    expect(ones.size + others.size).toBe(64)
    expect(new Set([...ones, ...others]).size).toBe(64)
    expect(Math.min(ones.size, others.size)).toBeGreaterThan(10)
  })
  let reported = 0
  one.partition.onChange(() => void (reported += 1), new AbortController().signal)
  other.leave()
  await eventually(() => expect(one.partition.buckets().size).toBe(64))
  expect(reported).toBeGreaterThan(0)
})

test('every worker owns all buckets until the members are known', async () => {
  const couch = createTestCouch({ url: 'http://127.0.0.1:9' })
  const registry = startRegistry(couch.db('control'))
  const signal = AbortSignal.abort()
  const partition = partitionBuckets(
    createNamePartition({ registry, role, self: 'one', takesPart: () => true, signal }),
    signal,
  )
  expect(partition.buckets().size).toBe(64)
})

test('two workers write their own events each, and the survivor finds those of a dead one', async () => {
  needs('private server')
  const { url } = await startServerWithFeed()
  const couch = createTestCouch({ url })
  const control = couch.db('control')
  await control.create()
  const [one, other] = [startWorker(control, 'one'), startWorker(control, 'other')]
  await eventually(() =>
    expect([one.members(), other.members()]).toEqual([
      ['one', 'other'],
      ['one', 'other'],
    ]),
  )
  const name = uniqueName('global-changes')
  const first = startGlobalChanges({ url, name, partition: one.partition })
  const second = startGlobalChanges({ url, name, partition: other.partition })
  const names = Array.from({ length: 100 }, () => uniqueName('orders'))
  const [ones, orphans] = [one, other].map(({ partition }) =>
    names
      .filter((name) => partition.buckets().has(bucketOf(name)))
      .slice(0, 5)
      .map((name) => couch.db(name)),
  ) as [Database[], Database[]]
  const dbs = [...ones, ...orphans]
  for (const db of dbs) await db.create()
  for (const db of dbs) await first.seen(db.name, ['created'])
  expect(first.changes.counts().written).toBeGreaterThan(0)
  expect(second.changes.counts().written).toBeGreaterThan(0)

  await second.stop()
  for (const db of orphans) await db.put({ _id: 'a' })
  other.leave()
  for (const db of orphans) await first.seen(db.name, ['created', 'updated'])
  for (const db of dbs) {
    const [doc] = await first.events.getMany([`created:${db.name}`])
    expect(doc!._conflicts).toBeUndefined()
  }
})
