/** The merge of branches in two steps, with attachments, and the reasons why a merge fails. */
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { everything } from '../../../sidecar/workers/partitioning.ts'
import { IN_CONFLICT } from '../../../sidecar/docstate/classify.ts'
import { MOST_BYTES } from '../../../sidecar/docstate/conflicts/merge-attachments.ts'
import type { Conflict, Resolver } from '../../../sidecar/docstate/conflicts/merge.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, refuse, type SeenRequest } from '../../support/faulty-proxy.ts'
import { expectSettled, invoice, paid, read, replicate } from './branches.ts'
import { docstateIn, startRig } from '../rig.ts'

const text = (data: string) => ({ content_type: 'text/plain', data: Buffer.from(data).toString('base64') })

/** Creates a document with the sidecar's branch and a longer branch of a device. */
async function inConflict({ ours = {}, theirs = {} }: { ours?: object; theirs?: object } = {}) {
  const db = await freshDb('resolve')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, state: 'invoiced', number: 42, ...ours })
  await replicate(db, first, 4, { ...paid, note: 'ring twice', ...theirs })
  return db
}

/** Returns the text of each attachment by name. */
async function attachmentsIn(db: Database): Promise<Record<string, string>> {
  const { _attachments = {} } = await db.get<StoredDoc>('o', { attachments: true })
  const entries = Object.entries(_attachments as Record<string, { data: string }>)
  return Object.fromEntries(entries.map(([name, { data }]) => [name, Buffer.from(data, 'base64').toString()]))
}

const isTakingOut = ({ path, body }: SeenRequest) => path.endsWith('/_bulk_docs') && body.includes('"new_edits":false')

/** Collects the errors of the log. */
function createErrors() {
  const errors: { msg: string; why?: string; fault?: string }[] = []
  const write = (line: string) => void errors.push(JSON.parse(line) as { msg: string })
  return { errors, log: pino({ level: 'error' }, { write }) }
}

const NO_DELETION = {
  _id: '_design/nodelete',
  validate_doc_update: 'function (doc) { if (doc._deleted) throw({ forbidden: "no deletion" }) }',
}

test('the merged document has the attachments of both branches', async () => {
  const db = await inConflict({
    ours: { _attachments: { 'invoice.txt': text('42') } },
    theirs: { _attachments: { 'photo.txt': text('a photo') } },
  })
  await startRig(db, invoice([]))
  await expectSettled(db, { state: 'invoiced', note: 'ring twice' })
  expect(await attachmentsIn(db)).toEqual({ 'invoice.txt': '42', 'photo.txt': 'a photo' })
})

test('a merge keeps the deletion and the change of an attachment on one branch', async () => {
  const db = await freshDb('resolve')
  const first = await db.put({ ...paid, _attachments: { 'a.txt': text('a'), 'b.txt': text('b'), 'c.txt': text('c') } })
  const { _attachments } = await db.get('o')
  const stubs = _attachments as Record<string, object>
  await db.put({
    ...paid,
    _rev: first,
    state: 'invoiced',
    _attachments: { 'b.txt': stubs['b.txt'], 'c.txt': text('C') },
  })
  await replicate(db, first, 4, {
    ...paid,
    _attachments: { 'a.txt': text('a'), 'b.txt': text('B'), 'c.txt': text('c') },
  })
  await startRig(db, invoice([]))
  await expectSettled(db, { state: 'invoiced' })
  expect(await attachmentsIn(db)).toEqual({ 'b.txt': 'B', 'c.txt': 'C' })
})

test('a branch with too large attachments stays, is logged once and delays no other document', async () => {
  const { errors, log } = createErrors()
  const big = { content_type: 'image/png', data: Buffer.alloc(MOST_BYTES + 1, 7).toString('base64') }
  const db = await inConflict({ ours: { _attachments: { 'big.png': big } } })
  await db.put({ ...paid, _id: 'p' })
  const { engine } = await startRig(db, invoice([]), { log, resyncMs: 300 })
  await eventually(async () => expect((await db.get('p')).state).toBe('invoiced'))
  await sleep(1500)
  expect((await read(db))._conflicts).toHaveLength(1)
  expect(engine.counts.conflicts).toEqual({ resolved: 0, stuck: 1 })
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatchObject({ msg: 'a conflict cannot be resolved', doc: 'o' })
})

function throwHostile(): never {
  const getPrototypeOf = () => {
    throw new Error('a trap')
  }
  throw new Proxy(new Error('inside'), { getPrototypeOf })
}

test.each<[string, unknown]>([
  ['is async', async () => Promise.reject(new Error('late'))],
  ['returns nothing', () => undefined],
  ['returns another type', () => ({ type: 'letter', state: 'paid' })],
  ['has a toJSON of text', ({ ours }: Conflict) => ({ ...ours, toJSON: () => 'text' })],
  ['throws an unreadable value', () => throwHostile()],
])('the result of a resolver that %s is ignored and logged with the type', async (_, resolver) => {
  const { errors, log } = createErrors()
  const db = await inConflict()
  await startRig(
    db,
    (control) => {
      invoice([])(control)
      control.resolve('order', resolver as Resolver)
    },
    { log },
  )
  await expectSettled(db, { type: 'order', state: 'invoiced', number: 42, note: 'ring twice' })
  expect(errors).toEqual([
    expect.objectContaining({ type: 'order', fault: expect.stringMatching(/expected|cannot be read/) as string }),
  ])
})

test('a worker that finds only the first step done finishes with the same result', async () => {
  const db = await inConflict({ ours: { name: 'by the sidecar' }, theirs: { name: 'by the device' } })
  const register = (control: Parameters<Parameters<typeof startRig>[1]>[0]) => {
    invoice([])(control)
    control.resolve('order', ({ ours, theirs }) => ({ ...ours, name: `${String(ours.name)} + ${String(theirs.name)}` }))
  }
  const proxy = await startFaultyProxy()
  proxy.plan((request) => (isTakingOut(request) ? refuse(503) : undefined))
  const dying = await startRig(createTestCouch({ url: proxy.url }).db(db.name), register)
  await eventually(() => expect(proxy.requests.some(isTakingOut)).toBe(true))
  await dying.stop()
  const merged = await read(db)
  expect(merged._conflicts).toHaveLength(1)
  expect(docstateIn(merged)?.merges).toEqual(merged._conflicts)
  await startRig(db, register)
  await expectSettled(db, { _rev: merged._rev, name: 'by the sidecar + by the device', state: 'invoiced' })
})

test('the next write removes the names of the merged revisions', async () => {
  const db = await freshDb('resolve')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, name: 'Ann B.' })
  await replicate(db, first, 4, { ...paid, note: 'ring twice' })
  await startRig(db, invoice([]))
  await expectSettled(db, { state: 'invoiced', name: 'Ann B.', note: 'ring twice' })
  expect(await read(db)).not.toHaveProperty('docstate')
})

test('if deletions are refused, the merge is written once, logged once and not counted as resolved', async () => {
  const { errors, log } = createErrors()
  const db = await inConflict()
  await db.put(NO_DELETION)
  const { engine } = await startRig(
    db,
    (control) => {
      invoice([])(control)
      control.resolve('order', ({ ours, theirs }) => ({ ...ours, note: `${String(ours.note)}+${String(theirs.note)}` }))
    },
    { log, resyncMs: 200 },
  )
  await eventually(() => expect(errors).toHaveLength(1))
  const { _rev } = await read(db)
  await sleep(2000)
  expect(await read(db)).toMatchObject({ _rev, note: 'undefined+ring twice', _conflicts: [expect.any(String)] })
  expect(errors).toEqual([expect.objectContaining({ msg: 'a conflict cannot be resolved', doc: 'o' })])
  expect(engine.counts.conflicts).toEqual({ resolved: 0, stuck: 1 })
})

test('the owner of a conflict resolves it, and another worker does so at its second resync', async () => {
  const db = await inConflict()
  const partOf = (responsible: boolean) => ({
    ...everything,
    isOurs: ({ state }: { state: string }) => state !== IN_CONFLICT || responsible,
  })
  const other = await startRig(db, invoice([]), { worker: 'other', partition: partOf(false) })
  await sleep(700)
  expect((await read(db))._conflicts).toHaveLength(1)
  const responsible = await startRig(db, invoice([]), { worker: 'responsible', partition: partOf(true) })
  await expectSettled(db, { state: 'invoiced' })
  await eventually(() => expect(responsible.engine.health().conflicts).toBe(1))
  expect(other.engine.health().conflicts).toBe(0)

  const alone = await inConflict()
  await startRig(alone, invoice([]), { partition: partOf(false), resyncMs: 300 })
  await expectSettled(alone, { state: 'invoiced' })
})
