/** How the engine saves the result of a handler. */
import { expect, test } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

test('a client’s edit during an unsafe handler is merged with the result', async () => {
  const db = await freshDb('saving')
  const [began, go] = [createLatch(), createLatch()]
  let runs = 0
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      runs += 1
      began.open()
      await go.opened
      const { draft: _draft, ...rest } = doc
      return { ...rest, state: 'invoiced', number: 42 }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid', name: 'Ann', draft: true })
  await began.opened
  await db.put({ ...(await db.get('o')), name: 'Anna', phone: '123' })
  go.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  const { _rev, ...doc } = await db.get('o')
  expect(doc).toEqual({ _id: 'o', type: 'order', state: 'invoiced', number: 42, name: 'Anna', phone: '123' })
  expect(runs).toBe(1)
})

test.each(['returned', 'saved'] as const)(
  'an edit that a renewal merged is kept in a document that is %s',
  async (how) => {
    const db = await freshDb('saving')
    const [began, go] = [createLatch(), createLatch()]
    const register = (control: Control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        began.open()
        await go.opened
        const { draft: _draft, ...next } = { ...doc, number: 42 } as Doc & { number: number; draft?: unknown }
        if (how === 'returned') return { ...next, state: 'invoiced' }
        const saved = await ctx.save(next)
        expect(saved).toMatchObject({ name: 'Anna', number: 42 })
        return { ...saved, state: 'invoiced', number: saved.number + 1 }
      })
    await startRig(db, register, { leaseMs: 9000 })
    await db.put({ _id: 'o', type: 'order', state: 'paid', name: 'Ann', draft: true })
    await began.opened
    const edited = await db.put({ ...(await db.get('o')), name: 'Anna', phone: '123' })
    await eventually(async () => expect((await db.get('o'))._rev).not.toBe(edited))
    go.open()
    await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
    const { _rev, ...doc } = await db.get('o')
    const number = how === 'returned' ? 42 : 43
    expect(doc).toEqual({ _id: 'o', type: 'order', state: 'invoiced', number, name: 'Anna', phone: '123' })
  },
)

test('a failure keeps an edit that a renewal merged', async () => {
  const db = await freshDb('saving')
  const [began, go] = [createLatch(), createLatch()]
  const register = (control: Control) =>
    control.unsafe('order', 'paid', async () => {
      began.open()
      await go.opened
      throw new Reject('no', 'never')
    })
  await startRig(db, register, { leaseMs: 9000 })
  await db.put({ _id: 'o', type: 'order', state: 'paid', name: 'Ann' })
  await began.opened
  const edited = await db.put({ ...(await db.get('o')), name: 'Anna' })
  await eventually(async () => expect((await db.get('o'))._rev).not.toBe(edited))
  go.open()
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'error', name: 'Anna' }))
})

test('the result of a safe handler is dropped after an edit, and the newer document is handled', async () => {
  const db = await freshDb('saving')
  const [began, go] = [createLatch(), createLatch()]
  await startRig(db, (control) =>
    control.safe('order', 'paid', async (doc) => {
      began.open()
      await go.opened
      return { ...doc, state: 'counted', from: doc.name }
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid', name: 'Ann' })
  await began.opened
  await db.put({ ...(await db.get('o')), name: 'Anna' })
  go.open()
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'counted', from: 'Anna' }))
})

test('a result without JSON ends in error with the reason', async () => {
  const db = await freshDb('saving')
  await startRig(db, (control) => control.safe('order', 'paid', async (doc) => ({ ...doc, state: 'done', total: 10n })))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  const reason = expect.stringContaining('BigInt') as unknown
  expect(await db.get('o')).toMatchObject({ error: { code: 'save_refused', reason } })
})

test('a document keeps its attachments when its result is saved', async () => {
  const db = await freshDb('saving')
  await db.put({
    _id: 'o',
    type: 'order',
    state: 'paid',
    _attachments: { 'note.txt': { content_type: 'text/plain', data: Buffer.from('hello').toString('base64') } },
  })
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'invoiced' })),
  )
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect((await db.get('o'))._attachments).toHaveProperty(['note.txt', 'length'], 5)
})

test('a state without a handler times out', async () => {
  const db = await freshDb('saving')
  const machines = {
    offer: {
      made: { mode: 'safe', next: { open: 'sidecar' } },
      open: { next: { expired: 'sidecar' }, timeout: { afterMs: 700, next: 'expired' } },
      expired: {},
    },
  } as const
  await startRig(db, (control) => control.safe('offer', 'made', (doc) => Promise.resolve({ ...doc, state: 'open' })), {
    machines,
  })
  await db.put({ _id: 'a', type: 'offer', state: 'made' })
  await db.put({ _id: 'b', type: 'offer', state: 'open' })
  await eventually(async () => expect(docstateIn(await db.get('a'))).toHaveProperty('timeout_at'))
  await eventually(async () => expect([await stateOf(db, 'a'), await stateOf(db, 'b')]).toEqual(['expired', 'expired']))
  expect(await db.get('b')).not.toHaveProperty('docstate')
})

test('in-place changes of a failed handler are not saved', async () => {
  const db = await freshDb('saving')
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc: { history: string[]; state: string }) => {
        doc.state = 'invoiced'
        doc.history.push('a try')
        throw new Error('the mail server is down')
      },
      { attempts: 1 },
    ),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid', history: [] })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect(await db.get('o')).toMatchObject({ history: [], docstate: { failed_in: 'paid' } })
})

test('in-place changes that a handler returns are merged with a client’s edit', async () => {
  const db = await freshDb('saving')
  const [began, go] = [createLatch(), createLatch()]
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc: { history: string[]; state: string }) => {
      began.open()
      await go.opened
      doc.history.push('invoiced')
      doc.state = 'invoiced'
      return doc
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid', name: 'Ann', history: ['made'] })
  await began.opened
  await db.put({ ...(await db.get('o')), name: 'Anna' })
  go.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(await db.get('o')).toMatchObject({ name: 'Anna', history: ['made', 'invoiced'] })
})
