/** Branches of other types, which a client may add to any document. The merge removes them completely. */
import { expect, test } from 'vitest'
import { defineMachines } from '../../../ddocs/machine.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { Doc } from '../../../sidecar/couch/documents.ts'
import { freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig } from '../rig.ts'
import { expectSettled, invoice, paid, read, replicate } from './branches.ts'

const machines = defineMachines({
  order: { paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } }, invoiced: {}, error: {} },
  parcel: { packed: { create: 'client', next: { sent: 'client' } }, sent: {} },
})

/** Adds a branch without a common ancestor. */
async function beside(db: Database, doc: Doc, length = 1): Promise<void> {
  const ids = Array.from({ length }, (_, at) => `${'e'.repeat(31)}${at.toString(16)}`)
  const _revisions = { start: length, ids }
  await db.merge([{ ...doc, _id: 'o', _rev: `${length}-${ids[0]!}`, _revisions }])
}

test.each([
  ['of the app’s own, which CouchDB shows', { type: 'note', text: 'mine' }, 9],
  ['of the app’s own, which CouchDB hides', { type: 'note', text: 'mine' }, 1],
  ['without any type', { text: 'mine' }, 9],
  ['of another machine', { type: 'parcel', state: 'packed', weight: 3 }, 9],
  ['of another machine in its last state', { type: 'parcel', state: 'sent', weight: 3 }, 1],
])('the document keeps its type and fields when the sidecar removes a branch %s', async (_, branch, length) => {
  const db = await freshDb('one-type')
  const runs: string[] = []
  await startRig(db, invoice(runs), { machines })
  await db.put(paid)
  await expectSettled(db, { state: 'invoiced' })
  await beside(db, branch as unknown as Doc, length)
  await expectSettled(db, { type: 'order', state: 'invoiced', name: 'Ann', number: 42 })
  const doc = await read(db)
  for (const field of ['text', 'weight']) expect(doc).not.toHaveProperty(field)
  expect(runs).toEqual(['o'])
})

test('a document with a conflicting branch of another type is handled', async () => {
  const db = await freshDb('one-type')
  await db.put(paid)
  await beside(db, { type: 'note', text: 'mine' } as unknown as Doc, 5)
  const runs: string[] = []
  await startRig(db, invoice(runs), { machines })
  await expectSettled(db, { type: 'order', state: 'invoiced', number: 42 })
  expect(runs).toEqual(['o'])
})

test('the sidecar does not change conflicts of the app’s own documents', async () => {
  const db = await freshDb('one-type')
  const { engine } = await startRig(db, invoice([]), { machines })
  const rev = await db.put({ _id: 'o', type: 'note', text: 'one' })
  await replicate(db, rev, 2, { _id: 'o', type: 'note', text: 'two' })
  await replicate(db, rev, 3, { _id: 'o', type: 'note', text: 'three' }, 'f')
  await db.put({ ...paid, _id: 'last' })
  await eventually(async () => expect((await db.get('last')).state).toBe('invoiced'))
  expect((await read(db))._conflicts).toHaveLength(1)
  expect(engine.health().conflicts).toBe(0)
})
