import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const count = (runs: Map<string, string[]>) => (control: Control) =>
  control.unsafe('order', 'paid', (doc, ctx) => {
    runs.set(doc._id, [...(runs.get(doc._id) ?? []), ctx.key])
    return Promise.resolve({ ...doc, state: 'invoiced' })
  })

const orders = (n: number) =>
  Array.from({ length: n }, (_, i) => JSON.stringify({ _id: `o${i}`, type: 'order', state: 'paid' }))

test('two workers that race for the same documents run each handler once', async () => {
  const db = await freshDb('once')
  const runs = new Map<string, string[]>()
  await startRig(db, count(runs), { worker: 'one' })
  await startRig(db, count(runs), { worker: 'two' })
  await db.bulk(orders(200))
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
    expect(rows).toEqual([{ key: ['order', 'invoiced'], value: 200 }])
  })
  expect([...runs.values()].filter((keys) => keys.length !== 1)).toEqual([])
})

test('a second worker that reads the whole feed runs no handler again', async () => {
  const db = await freshDb('once')
  const runs = new Map<string, string[]>()
  const first = await startRig(db, count(runs), { worker: 'one' })
  await db.bulk(orders(20))
  await eventually(() => expect(runs.size).toBe(20))
  await first.stop()
  const again = await startRig(db, count(runs), { worker: 'knows nothing' })
  await db.put({ _id: 'last', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'last')).toBe('invoiced'))
  await again.stop()
  expect([...runs.values()].every((keys) => keys.length === 1)).toBe(true)
})

test('all attempts in one state share a key, and a new entry into the state gets a new key', async () => {
  const db = await freshDb('once')
  const keys: string[] = []
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      (doc, ctx) => {
        keys.push(ctx.key)
        if (ctx.attempt < 3) return Promise.reject(new Error('not yet'))
        return Promise.resolve({ ...doc, state: 'invoiced' })
      },
      { backoff: { baseMs: 50, capMs: 50 } },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(new Set(keys).size).toBe(1)
  const doc = await db.get('o')
  await db.put({ ...doc, state: 'paid' })
  await eventually(() => expect(keys).toHaveLength(6))
  expect(new Set(keys).size).toBe(2)
})

test('a handler that returns nothing does not run again after a resync or a restart', async () => {
  const db = await freshDb('once')
  let runs = 0
  const register = (control: Control) =>
    control.unsafe('order', 'paid', () => {
      runs += 1
      return Promise.resolve()
    })
  const first = await startRig(db, register, { worker: 'one', resyncMs: 100 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('o'))?.handled).toBeTypeOf('string'))
  await first.stop()
  const second = await startRig(db, register, { worker: 'two', resyncMs: 100 })
  await db.put({ _id: 'p', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('p'))?.handled).toBeTypeOf('string'))
  await second.stop()
  expect(runs).toBe(2)
})

test('a claim is renewed while its handler runs, and no other worker takes it over', async () => {
  const db = await freshDb('once')
  const [began, go] = [createLatch(), createLatch()]
  let runs = 0
  const register = (control: Control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc) => {
        runs += 1
        began.open()
        await go.opened
        return { ...doc, state: 'invoiced' }
      },
      { onLost: 'retry' },
    )
  await startRig(db, register, { worker: 'one', leaseMs: 8000 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await began.opened
  await startRig(db, register, { worker: 'two', leaseMs: 8000, resyncMs: 100 })
  const claimedAt = () => db.get('o').then((doc) => Date.parse((docstateIn(doc)!.claim as { at: string }).at))
  const first = await claimedAt()
  await eventually(async () => expect((await claimedAt()) - first).toBeGreaterThan(10_000))
  go.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(runs).toBe(1)
})
