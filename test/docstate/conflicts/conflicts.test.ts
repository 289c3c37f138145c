/** Conflicts from replication: revisions written elsewhere while the sidecar changed the state. */
import type { Database } from '../../../sidecar/couch/database.ts'
import { expect, test } from 'vitest'
import type { Doc, StoredDoc } from '../../../sidecar/couch/documents.ts'
import type { Docstate } from '../../../sidecar/docstate/types.ts'
import { freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { expectSettled, invoice, paid, read, replicate } from './branches.ts'
import { createLatch, startRig } from '../rig.ts'

test.each([
  ['longer, so that CouchDB shows it', 5],
  ['shorter, so that CouchDB hides it', 1],
])('an edit that is %s keeps the transition, and the handler does not run again', async (_, length) => {
  const db = await freshDb('conflicts')
  const runs: string[] = []
  const rig = await startRig(db, invoice(runs))
  const first = await db.put(paid)
  await eventually(async () => expect((await db.get('o')).state).toBe('invoiced'))
  await replicate(db, first, length, { ...paid, name: 'Ann B.', note: 'ring twice' })
  await expectSettled(db, { state: 'invoiced', number: 42, name: 'Ann B.', note: 'ring twice' })
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(runs).toEqual(['o'])
  expect(rig.engine.health().conflicts).toBe(1)
})

test('a branch that arrives during a handler waits for its end, and no other worker starts the document', async () => {
  const db = await freshDb('conflicts')
  const [began, go] = [createLatch(), createLatch()]
  const runs: string[] = []
  await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', async (doc) => {
        runs.push(doc._id)
        began.open()
        await go.opened
        return { ...doc, state: 'invoiced', number: 42 }
      }),
    { worker: 'first', leaseMs: 8000 },
  )
  const first = await db.put(paid)
  await began.opened
  await startRig(db, invoice(runs), { worker: 'second', leaseMs: 8000 })
  await replicate(db, first, 6, { ...paid, note: 'ring twice' })
  await new Promise((resolve) => setTimeout(resolve, 10_000)) // claims are renewed, and no worker takes over
  expect(runs).toEqual(['o'])
  go.open()
  await expectSettled(db, { state: 'invoiced', number: 42, note: 'ring twice' })
  expect(runs).toEqual(['o'])
})

test('a conflict that arrived while no sidecar ran is resolved before a handler starts', async () => {
  const db = await freshDb('conflicts')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, state: 'invoiced', number: 42 })
  await replicate(db, first, 4, { ...paid, note: 'ring twice' })
  const runs: string[] = []
  await startRig(db, invoice(runs))
  await expectSettled(db, { state: 'invoiced', number: 42, note: 'ring twice' })
  expect(runs).toEqual([])
})

test('if no branch made a transition, the edits of all branches are kept and the handler runs once', async () => {
  const db = await freshDb('conflicts')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, address: 'Baker Street' })
  await replicate(db, first, 2, { ...paid, note: 'ring twice' })
  await replicate(db, first, 1, { ...paid, name: 'Ann C.' }, 'e')
  const runs: string[] = []
  await startRig(db, invoice(runs))
  await expectSettled(db, { state: 'invoiced', name: 'Ann C.', note: 'ring twice', address: 'Baker Street' })
  expect(runs).toEqual(['o'])
})

test('the transition that comes later in the machine wins over the other', async () => {
  const db = await freshDb('conflicts')
  const machines = {
    order: {
      paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar', cancelled: 'client' } },
      invoiced: { next: { cancelled: 'client' } },
      cancelled: {},
    },
  } as const
  await startRig(
    db,
    (control) => control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced', number: 42 })),
    { machines },
  )
  const first = await db.put(paid)
  await eventually(async () => expect((await db.get('o')).state).toBe('invoiced'))
  await replicate(db, first, 1, { ...paid, state: 'cancelled' })
  await expectSettled(db, { state: 'cancelled', number: 42 })
})

test('a custom resolver gets both branches and their ancestor, and the default applies if it throws', async () => {
  const db = await freshDb('conflicts')
  const seen: object[] = []
  await startRig(db, (control) => {
    invoice([])(control)
    control.resolve('order', ({ ours, theirs, base }) => {
      seen.push([ours.state, theirs.note, base?.name])
      if (theirs.note === 'throw') throw new Error('no idea')
      return { ...ours, note: `merged: ${String(theirs.note)}` }
    })
  })
  const first = await db.put(paid)
  await eventually(async () => expect((await db.get('o')).state).toBe('invoiced'))
  await replicate(db, first, 4, { ...paid, note: 'ring' })
  await expectSettled(db, { state: 'invoiced', note: 'merged: ring' })
  await replicate(db, first, 9, { ...paid, note: 'throw' }, 'f')
  await expectSettled(db, { state: 'invoiced', note: 'throw', number: 42 })
  expect(seen).toContainEqual(['invoiced', 'ring', 'Ann'])
})

test('several workers merge to the same result and create no new conflict', async () => {
  const db = await freshDb('conflicts')
  const runs: string[] = []
  for (const worker of ['a', 'b', 'c']) await startRig(db, invoice(runs), { worker })
  const ids = Array.from({ length: 30 }, (_, i) => `o${i}`)
  const firsts = await Promise.all(ids.map(async (_id) => [_id, await db.put({ ...paid, _id })] as const))
  await Promise.all(firsts.map(([_id, first], i) => replicate(db, first, 1 + (i % 6), { ...paid, _id, note: 'ring' })))
  await eventually(async () => {
    for (const doc of await db.getMany(ids)) {
      expect(doc._conflicts).toBeUndefined()
      expect(doc).toMatchObject({ state: 'invoiced', number: 42, note: 'ring' })
    }
  })
  expect(runs.sort()).toEqual([...ids].sort())
})

test('the sidecar does not change conflicts of types without a handler', async () => {
  const db = await freshDb('conflicts')
  const { engine } = await startRig(db, invoice([]))
  const first = await db.put({ _id: 'o', type: 'letter', text: 'a' })
  await db.put({ _id: 'o', _rev: first, type: 'letter', text: 'b' })
  await replicate(db, first, 1, { _id: 'o', type: 'letter', text: 'c' })
  await db.put({ ...paid, _id: 'p' })
  await eventually(async () => expect((await db.get('p')).state).toBe('invoiced'))
  expect((await read(db))._conflicts).toHaveLength(1)
  expect(engine.health().conflicts).toBe(0)
})

test('a dead claim beside its result is removed, also if their ancestor was compacted', async () => {
  const db = await freshDb('conflicts')
  const leaf = (way: string, fields: object) => {
    const ids = [...way].map((letter) => letter.repeat(32))
    return {
      ...fields,
      _id: 'o',
      type: 'order',
      _rev: `${ids.length}-${ids[0]!}`,
      _revisions: { start: ids.length, ids },
    }
  }
  const claim = { worker: 'dead', token: 'dead', at: new Date(0).toISOString(), lease_ms: 1000 }
  const docstate = { state: 'paid', entry: `1-${'a'.repeat(32)}`, claim }
  await db.merge([leaf('cba', { state: 'invoiced', total: 2 }), leaf('da', { state: 'paid', total: 1, docstate })])
  const runs: string[] = []
  await startRig(db, invoice(runs))
  await expectSettled(db, { _rev: `3-${'c'.repeat(32)}`, state: 'invoiced', total: 2 })
  expect(runs).toEqual([])
})

/** Returns the latest earlier revision that matches. */
async function revisionOf(db: Database, isIt: (doc: { docstate?: Docstate }) => boolean): Promise<StoredDoc> {
  const { start, ids } = (await db.find('o', { revs: true }))!._revisions as { start: number; ids: string[] }
  const revisions = await Promise.all(ids.map((id, i) => db.find('o', { rev: `${start - i}-${id}` })))
  return revisions.find((doc) => doc && isIt(doc as { docstate?: Docstate }))!
}

const failedOnce = (runs: string[]) => ({
  handler: async (doc: { _id: string }) => {
    runs.push(doc._id)
    if (runs.length === 1) throw new Error('first try')
  },
  options: { backoff: { baseMs: 500, capMs: 500 } },
})

test('a handled document stays handled beside a longer branch from an earlier revision', async () => {
  const db = await freshDb('conflicts')
  const runs: string[] = []
  const { handler, options } = failedOnce(runs)
  await startRig(db, (control) => control.unsafe('order', 'paid', handler, options))
  await db.put(paid)
  await eventually(async () => expect((await db.get('o')).docstate).toHaveProperty('handled'))
  const failed = await revisionOf(db, ({ docstate }) => docstate?.attempts === 1 && !docstate.claim)
  await replicate(db, failed._rev, 3, { ...withoutRev(failed), name: 'Ann B.' })
  await expectSettled(db, { state: 'paid', name: 'Ann B.', docstate: { handled: expect.any(String) as string } })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(runs).toHaveLength(2)
})

test.each([1, 3])(
  'a parked document stays parked beside %i edits of a device from an earlier attempt',
  async (length) => {
    const db = await freshDb('conflicts')
    const at = new Date(0).toISOString()
    const tried = { state: 'paid', entry: '1-x', attempts: 1 }
    const parked = { at, reason: 'lost' }
    const failed = await db.put({ ...paid, docstate: { ...tried, retry_at: at } })
    const claim = { worker: 'dead', token: 't', at, lease_ms: 1000 }
    const claimed = await db.put({ ...paid, _rev: failed, docstate: { ...tried, claim } })
    await db.put({ ...paid, _rev: claimed, docstate: { ...tried, parked } })
    await replicate(db, failed, length, { ...paid, name: 'Ann B.', docstate: { ...tried, retry_at: at } })
    const runs: string[] = []
    await startRig(db, invoice(runs))
    await expectSettled(db, { state: 'paid', name: 'Ann B.', docstate: { parked } })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(runs).toEqual([])
  },
)

test('an invalid claim does not hide a live claim', async () => {
  const db = await freshDb('conflicts')
  const [began, go] = [createLatch(), createLatch()]
  const runs: string[] = []
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      runs.push('first')
      began.open()
      await go.opened
      return { ...doc, state: 'invoiced' }
    }),
  )
  const first = await db.put(paid)
  await began.opened
  await replicate(db, first, 4, { ...paid, docstate: { state: 'paid', claim: {} } })
  await startRig(db, invoice(runs), { worker: 'second' })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect((await read(db))._conflicts).toHaveLength(1)
  go.open()
  await expectSettled(db, { state: 'invoiced' })
  expect(runs).toEqual(['first'])
})

const withoutRev = ({ _rev, ...doc }: StoredDoc): Doc => doc
