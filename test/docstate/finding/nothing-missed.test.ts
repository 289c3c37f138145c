import { expect, test } from 'vitest'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { eventually } from '../../support/eventually.ts'
import { createAgain, deleteDb, freshDb, needs, nextSecond } from '../../support/couchdb.ts'
import { installDocstate } from '../install.ts'
import { createLatch, docstateIn, startRig, stateOf } from '../rig.ts'

const invoice = (ran: string[]) => (control: Control) =>
  control.unsafe('order', 'paid', (doc) => {
    ran.push(doc._id)
    return Promise.resolve({ ...doc, state: 'invoiced' })
  })

test('a document written before the start and one written after it are both handled', async () => {
  const db = await freshDb('missed')
  await db.put({ _id: 'before', type: 'order', state: 'paid', note: 'kept' })
  const ran: string[] = []
  await startRig(db, invoice(ran))
  await eventually(async () => expect(await stateOf(db, 'before')).toBe('invoiced'))
  await db.put({ _id: 'after', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'after')).toBe('invoiced'))
  expect(await db.get('before')).toEqual({
    _id: 'before',
    _rev: expect.stringMatching(/^3-/) as string,
    type: 'order',
    state: 'invoiced',
    note: 'kept',
  })
  expect(ran.sort()).toEqual(['after', 'before'])
})

test('a sidecar handles a document that was written while no sidecar ran', async () => {
  const db = await freshDb('missed')
  const ran: string[] = []
  const first = await startRig(db, invoice(ran))
  await db.put({ _id: 'one', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'one')).toBe('invoiced'))
  await first.stop()
  await db.put({ _id: 'two', type: 'order', state: 'paid' })
  await startRig(db, invoice(ran))
  await eventually(async () => expect(await stateOf(db, 'two')).toBe('invoiced'))
  expect(ran).toEqual(['one', 'two'])
})

test('a document passes through a chain of states to its end', async () => {
  const db = await freshDb('missed')
  await startRig(db, (control) => {
    control.safe('photo', 'uploaded', (doc) => Promise.resolve({ ...doc, state: 'resized', steps: 1 }))
    control.unsafe('photo', 'resized', (doc) => Promise.resolve({ ...doc, state: 'listed', steps: 2 }))
  })
  await db.put({ _id: 'p', type: 'photo', state: 'uploaded' })
  await eventually(async () => expect(await db.get('p')).toMatchObject({ state: 'listed', steps: 2 }))
})

test('the next sidecar makes the due attempt of a sidecar that stopped', async () => {
  const db = await freshDb('missed')
  const failing = await startRig(db, (control) =>
    control.unsafe('order', 'paid', () => Promise.reject(new Error('the printer is on fire')), {
      backoff: { baseMs: 1500, capMs: 1500 },
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('o'))?.retry_at).toBeTypeOf('string'))
  await failing.stop()
  const before = await db.get('o')
  const attempts: number[] = []
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (doc, ctx) => {
      attempts.push(ctx.attempt)
      return Promise.resolve({ ...doc, state: 'invoiced' })
    }),
  )
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(attempts).toEqual([Number(docstateIn(before)!.attempts) + 1])
})

test('a document that changes while its handler runs is handled again', async () => {
  const db = await freshDb('missed')
  const [began, go] = [createLatch(), createLatch()]
  const seen: unknown[] = []
  await startRig(db, (control) =>
    control.safe('note', 'fresh', async (doc) => {
      seen.push(doc.text)
      if (seen.length === 1) {
        began.open()
        await go.opened
      }
      return { ...doc, state: 'read' }
    }),
  )
  await db.put({ _id: 'n', type: 'note', state: 'fresh', text: 'first' })
  await began.opened
  const current = await db.get('n')
  await db.put({ ...current, text: 'second' })
  go.open()
  await eventually(async () => expect(await db.get('n')).toMatchObject({ state: 'read', text: 'second' }))
  expect(seen).toEqual(['first', 'second'])
})

test('a deleted design document is installed again, and documents written meanwhile are handled', async () => {
  const db = await freshDb('missed')
  const ran: string[] = []
  await startRig(db, invoice(ran), { prepare: () => installDocstate(db, {}), resyncMs: 1000 })
  await db.put({ _id: 'one', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'one')).toBe('invoiced'))
  const { _rev } = await db.get('_design/docstate')
  await db.remove('_design/docstate', _rev)
  await db.put({ _id: 'two', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'two')).toBe('invoiced'))
  await eventually(async () => expect(await db.find('_design/docstate')).toBeDefined())
  expect(ran).toEqual(['one', 'two'])
})

test('a deleted and recreated database gets its design document again, and its documents are handled', async () => {
  needs('database identity')
  const db = await freshDb('missed')
  const ran: string[] = []
  await startRig(db, invoice(ran), { prepare: () => installDocstate(db, {}) })
  await db.put({ _id: 'one', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'one')).toBe('invoiced'))
  await deleteDb(db.name)
  await nextSecond()
  await createAgain(db)
  await db.put({ _id: 'two', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'two')).toBe('invoiced'))
  expect(await db.find('_design/docstate')).toBeDefined()
  expect(ran).toEqual(['one', 'two'])
})
