/** How branches are made one document: in two steps, with their attachments, and what stands in the way. */
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { everything } from '../../../sidecar/workers/partitioning.ts'
import { IN_CONFLICT } from '../../../sidecar/docstate/classify.ts'
import { MOST_BYTES } from '../../../sidecar/docstate/conflicts/carry.ts'
import type { Conflict, Resolver } from '../../../sidecar/docstate/conflicts/merge.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, refuse, type SeenRequest } from '../../support/faulty-proxy.ts'
import { expectSettled, invoice, paid, read, replicate } from './branches.ts'
import { docstateIn, startRig } from '../rig.ts'

const text = (data: string) => ({ content_type: 'text/plain', data: Buffer.from(data).toString('base64') })

/** The sidecar's branch, and beside it a longer one of a device. */
async function inConflict({ ours = {}, theirs = {} }: { ours?: object; theirs?: object } = {}) {
  const db = await freshDb('resolve')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, state: 'invoiced', number: 42, ...ours })
  await replicate(db, first, 4, { ...paid, note: 'ring twice', ...theirs })
  return db
}

/** Of each attachment its text. */
async function attachmentsIn(db: Database): Promise<Record<string, string>> {
  const { _attachments = {} } = await db.get<StoredDoc>('o', { attachments: true })
  const entries = Object.entries(_attachments as Record<string, { data: string }>)
  return Object.fromEntries(entries.map(([name, { data }]) => [name, Buffer.from(data, 'base64').toString()]))
}

const isTakingOut = ({ path, body }: SeenRequest) => path.endsWith('/_bulk_docs') && body.includes('"new_edits":false')

/** Errors in the log, as they come. */
function createErrors() {
  const errors: { msg: string; why?: string; fault?: string }[] = []
  const write = (line: string) => void errors.push(JSON.parse(line) as { msg: string })
  return { errors, log: pino({ level: 'error' }, { write }) }
}

const NO_DELETION = {
  _id: '_design/nodelete',
  validate_doc_update: 'function (doc) { if (doc._deleted) throw({ forbidden: "no deletion" }) }',
}

test('attachments of both branches are in the merged document', async () => {
  const db = await inConflict({
    ours: { _attachments: { 'invoice.txt': text('42') } },
    theirs: { _attachments: { 'photo.txt': text('a photo') } },
  })
  await startRig(db, invoice([]))
  await expectSettled(db, { state: 'invoiced', note: 'ring twice' })
  expect(await attachmentsIn(db)).toEqual({ 'invoice.txt': '42', 'photo.txt': 'a photo' })
})

test('an attachment that one branch deleted goes, one that it changed is the new one', async () => {
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

test('a branch with more attachments than can be moved stays, which is told once, and holds up nobody', async () => {
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
  ['throws what cannot be looked at', () => throwHostile()],
])('a resolver that %s does not count, which is told with the type', async (_, resolver) => {
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

test('whoever finds only the first step done comes to the same end, whatever the resolver does', async () => {
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

test('the names of what was merged go with the next write', async () => {
  const db = await freshDb('resolve')
  const first = await db.put(paid)
  await db.put({ ...paid, _rev: first, name: 'Ann B.' })
  await replicate(db, first, 4, { ...paid, note: 'ring twice' })
  await startRig(db, invoice([]))
  await expectSettled(db, { state: 'invoiced', name: 'Ann B.', note: 'ring twice' })
  expect(await read(db)).not.toHaveProperty('docstate')
})

test('where deletions are refused the merge is written once, told once, and not counted', async () => {
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

test('a conflict is resolved by the worker that is responsible for it, and by another at its second look', async () => {
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
