/** What a handler does by its context before it ends: saving, reading, writing. */
import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import type { Context } from '../../sidecar/docstate/types.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { createLatch, startRig, stateOf } from './rig.ts'

test('a handler may save its document on the way, and goes on holding it', async () => {
  const db = await freshDb('saving')
  const seen: unknown[] = []
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      const saved = await ctx.save({ ...doc, number: 42 })
      seen.push(await db.get('o'), saved._rev)
      return { ...saved, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', number: 42 }))
  const [midway, rev] = seen as [{ _rev: string }, string]
  expect(midway).toMatchObject({ _rev: rev, state: 'paid', number: 42, docstate: { claim: { worker: 'rig' } } })
  expect(await db.get('o')).not.toHaveProperty('docstate')
})

test('a handler may save the next state itself and return nothing', async () => {
  const db = await freshDb('saving')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      await ctx.save({ ...doc, state: 'invoiced' })
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await eventually(async () => expect((await db.get('o'))._rev).toMatch(/^3-/))
  expect(await db.get('o')).not.toHaveProperty('docstate')
})

test('a handler reads and writes other documents of its database', async () => {
  const db = await freshDb('saving')
  await db.put({ _id: 'stock', count: 10 })
  await startRig(db, (control) =>
    control.safe('order', 'paid', async (doc, ctx) => {
      const stock = await ctx.find('stock')
      await ctx.put({ ...stock!, count: Number(stock!.count) - 1 })
      expect(await ctx.find('nowhere')).toBeUndefined()
      return { ...doc, state: 'reserved' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('reserved'))
  expect((await db.get('stock')).count).toBe(9)
})

test('a handler that goes on after it has saved the next state has no more say about the document', async () => {
  const db = await freshDb('saving')
  const [left, go] = [createLatch(), createLatch()]
  await startRig(
    db,
    (control) =>
      control.unsafe(
        'order',
        'paid',
        async (doc, ctx) => {
          await ctx.save({ ...doc, state: 'invoiced' })
          left.open()
          await go.opened
          throw new Reject('too_late', 'it has left')
        },
        { attempts: 1 },
      ),
    { leaseMs: 600 },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await left.opened
  await new Promise((resolve) => setTimeout(resolve, 1000)) // renewals would be due
  go.open()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const doc = await db.get('o')
  expect(doc).toMatchObject({ _rev: expect.stringMatching(/^3-/) as unknown, state: 'invoiced' })
  expect(doc).not.toHaveProperty('docstate')
})

test.each([
  ['null', null],
  ['a state that nobody knows', { state: 'nowhere' }],
  ['no object', 'thanks'],
])('after a save of another state, returning %s means nothing', async (_, returned) => {
  const db = await freshDb('saving')
  const machines = { order: { paid: { mode: 'unsafe', next: { invoiced: 'sidecar' } }, invoiced: {} } } as const
  const log = vi.fn()
  const handle = async (doc: Doc, ctx: Context) => {
    await ctx.save({ ...doc, state: 'invoiced' })
    return returned as never
  }
  await startRig(db, (control) => control.unsafe('order', 'paid', handle), {
    machines,
    log: pino({ level: 'warn' }, { write: log }),
  })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await new Promise((resolve) => setTimeout(resolve, 300))
  const doc = await db.get('o')
  expect(doc).toMatchObject({ _rev: expect.stringMatching(/^3-/) as unknown, state: 'invoiced' })
  expect(doc).not.toHaveProperty('docstate')
  expect(log).not.toHaveBeenCalled()
})

test('a save of a state that the machine does not have is refused', async () => {
  const db = await freshDb('saving')
  const machines = { order: { paid: { mode: 'safe', next: { invoiced: 'sidecar' } }, invoiced: {} } } as const
  await startRig(
    db,
    (control) => control.safe('order', 'paid', async (doc, ctx) => void (await ctx.save({ ...doc, state: 'lost' }))),
    { machines },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () =>
    expect(await db.get('o')).toMatchObject({ state: 'error', error: { code: 'bad_result' } }),
  )
})

test('a document without an id is not written', async () => {
  const db = await freshDb('saving')
  await startRig(db, (control) =>
    control.safe(
      'order',
      'paid',
      async (doc, ctx) => {
        await ctx.put({ type: 'log' } as unknown as StoredDoc)
        return { ...doc, state: 'invoiced' }
      },
      { attempts: 1 },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect(await db.get('o')).toMatchObject({ error: { reason: expect.stringContaining('_id') as unknown } })
  expect((await db.info()).doc_count).toBe(2) // the order, and the design document
})

test('the signal of a handler aborts when it has ended, for what it has left running', async () => {
  const db = await freshDb('context')
  const seen: Context[] = []
  await startRig(db, (control) =>
    control.safe('order', 'paid', async (doc, ctx) => {
      expect(ctx.signal.aborted).toBe(false)
      seen.push(ctx)
      return { ...doc, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(seen[0]!.signal.aborted).toBe(true)
  expect(seen[0]!.signal.reason).toMatchObject({ message: 'the handler has ended' })
})

test('the signal aborts for a handler that never asked for it before its end', async () => {
  const db = await freshDb('context')
  const seen: Context[] = []
  await startRig(db, (control) => control.safe('order', 'paid', async (_, ctx) => void seen.push(ctx)))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await db.get('o')).toHaveProperty('docstate.handled'))
  expect(seen[0]!.signal.aborted).toBe(true)
})
