/** Operations of a handler's context: saving, reading and writing before the handler ends. */
import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import type { Context } from '../../sidecar/docstate/types.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { actOnOne, retry } from '../../sidecar/docstate/operator/actions.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

test('a handler saves its document midway and keeps its claim', async () => {
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

test('a handler may save the next state with ctx.save and return nothing', async () => {
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

test('a handler that saved the next state cannot change the document’s outcome afterwards', async () => {
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
    { leaseMs: 9000 },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await left.opened
  await new Promise((resolve) => setTimeout(resolve, 3500)) // renewals would be due
  go.open()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const doc = await db.get('o')
  expect(doc).toMatchObject({ _rev: expect.stringMatching(/^3-/) as unknown, state: 'invoiced' })
  expect(doc).not.toHaveProperty('docstate')
})

test.each([
  ['null', null],
  ['an undeclared state', { state: 'nowhere' }],
  ['a text', 'thanks'],
])('after a handler saves another state, its result is ignored: %s', async (_, returned) => {
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

test('ctx.save of an undeclared state is refused', async () => {
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

test('ctx.put of a document without an id fails and writes nothing', async () => {
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
  expect((await db.info()).doc_count).toBe(2) // the order and the design document
})

test('the signal of a handler aborts when the handler ends', async () => {
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

test('the signal aborts at the end even if the handler never read the signal before', async () => {
  const db = await freshDb('context')
  const seen: Context[] = []
  await startRig(db, (control) => control.safe('order', 'paid', async (_, ctx) => void seen.push(ctx)))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await db.get('o')).toHaveProperty('docstate.handled'))
  expect(seen[0]!.signal.aborted).toBe(true)
})

test('a step runs once, and the document holds its result before ctx.once returns', async () => {
  const db = await freshDb('steps')
  const [calls, seen]: [string[], unknown[]] = [[], []]
  let tries = 0
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (order, ctx) => {
        const charge = await ctx.once('charge', (key) => {
          calls.push(key)
          return { id: `ch_${calls.length}` }
        })
        seen.push(charge, docstateIn(await db.get('o'))?.steps)
        await ctx.once('nothing', () => undefined)
        if (++tries < 3) throw new Error('not yet')
        return { ...order, state: 'invoiced', charge: charge.id }
      },
      { backoff: { baseMs: 20, capMs: 20 } },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', charge: 'ch_1' }))
  expect(calls).toHaveLength(1)
  expect(seen.slice(0, 4)).toEqual([
    { id: 'ch_1' },
    { charge: { id: 'ch_1' } },
    { id: 'ch_1' },
    { charge: { id: 'ch_1' }, nothing: null },
  ])
  expect(await db.get('o')).not.toHaveProperty('docstate')
})

test('a failed step runs again with the same key, and concurrent calls of one step run it once', async () => {
  const db = await freshDb('steps')
  const calls: string[] = []
  await startRig(db, (control) =>
    control.safe(
      'order',
      'paid',
      async (order, ctx) => {
        const step = async (key: string) => {
          calls.push(key)
          if (calls.length < 2) throw new Error('the API is away')
          return Promise.resolve(calls.length)
        }
        const both = await Promise.all([ctx.once('a', step), ctx.once('a', step)])
        return { ...order, state: 'invoiced', both, other: await ctx.once('b', step) }
      },
      { backoff: { baseMs: 20, capMs: 20 } },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', both: [2, 2], other: 3 }))
  expect(calls[0]).toBe(calls[1])
  expect(calls[2]).not.toBe(calls[0])
})

test.each([
  ['', 1, 'ctx.once: expected a name of 1 to 100 characters'],
  ['big', 1n, 'the step big returned a value without a JSON form'],
])('an invalid step puts the document into error: %j', async (name, result, reason) => {
  const db = await freshDb('steps')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (order, ctx) => {
      await ctx.once(name, () => result)
      return { ...order, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({
    code: 'bad_step',
    reason: expect.stringContaining(reason) as string,
  })
})

test('the results of steps survive an error and a retry by an operator', async () => {
  const db = await freshDb('steps')
  let calls = 0
  let isMended = false
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (order, ctx) => {
        const charge = await ctx.once('charge', () => ++calls)
        if (!isMended) throw new Reject('no_paper', 'the printer is empty')
        return { ...order, state: 'invoiced', charge }
      },
      { attempts: 1 },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  isMended = true
  expect(await actOnOne(db, 'o', retry)).toMatchObject({ kind: 'done' })
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', charge: 1 }))
})

test('a handler reads and writes documents of other databases', async () => {
  const [db, stock] = [await freshDb('orders'), await freshDb('stock')]
  await stock.put({ _id: 'pens', count: 10 })
  const codes: unknown[] = []
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (order, ctx) => {
      const other = ctx.db(stock.name)
      const pens = await other.find('pens')
      const { _rev } = await other.put({ ...pens!, count: Number(pens!.count) - 1 })
      codes.push(await other.put({ ...pens! }).catch(({ code }: { code: string }) => code))
      codes.push(await other.find('paper'))
      codes.push(
        await ctx
          .db('no-such-database')
          .put({ _id: 'x' })
          .catch(({ code }: { code: string }) => code),
      )
      return { ...order, state: 'reserved', rev: _rev }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('reserved'))
  expect(codes).toEqual(['conflict', undefined, 'not_found'])
  expect(await stock.get('pens')).toMatchObject({ count: 9, _rev: (await db.get('o')).rev })
})
