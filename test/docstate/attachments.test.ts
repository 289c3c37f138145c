/** Attachments of documents: read and written by handlers as streams, beside claims, renewals and the edits of others. */
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { docstateIn, startRig, stateOf } from './rig.ts'

const photo = { content_type: 'image/jpeg', data: Buffer.from('a photo').toString('base64') }
const order = { _id: 'o', type: 'order', state: 'paid' }
const MEGABYTE = 1024 * 1024

const read = async (db: Database, name: string, id = 'o') => {
  const found = await db.attachment(id, name, AbortSignal.timeout(10_000))
  return found && { type: found.type, text: await text(Readable.from(found.bytes)) }
}

const reaches = (db: Database, state: string, id = 'o') =>
  eventually(async () => expect(await stateOf(db, id)).toBe(state))

test.each(['safe', 'unsafe'] as const)('a %s handler reads an attachment and adds others', async (mode) => {
  const db = await freshDb('attachments')
  await startRig(db, (control) =>
    control[mode]('order', 'paid', async (doc, ctx) => {
      const given = (await ctx.attachment('photo.jpg'))!
      await ctx.attach('small.jpg', given.body, given.type)
      await ctx.attach('notes/a b.txt', 'grüße', 'text/plain')
      expect(await ctx.attachment('nowhere')).toBeUndefined()
      expect(await text((await ctx.attachment('notes/a b.txt'))!.body)).toBe('grüße')
      return { ...doc, state: 'shipped' }
    }),
  )
  await db.put({ ...order, _attachments: { 'photo.jpg': photo } })
  await reaches(db, 'shipped')
  expect(await read(db, 'photo.jpg')).toEqual({ type: 'image/jpeg', text: 'a photo' })
  expect(await read(db, 'small.jpg')).toEqual({ type: 'image/jpeg', text: 'a photo' })
  expect((await read(db, 'notes/a b.txt'))?.text).toBe('grüße')
  expect(docstateIn(await db.get('o'))).toBeUndefined()
})

test('what is attached takes the place of what was there, and is kept by ctx.save', async () => {
  const db = await freshDb('attachments')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      await ctx.attach('photo.jpg', Buffer.from('a smaller one'), 'image/jpeg')
      const saved = await ctx.save({ ...doc, note: 'smaller' })
      await ctx.attach('second.txt', 'two')
      return { ...saved, state: 'shipped' }
    }),
  )
  await db.put({ ...order, _attachments: { 'photo.jpg': photo } })
  await reaches(db, 'shipped')
  expect((await read(db, 'photo.jpg'))?.text).toBe('a smaller one')
  expect((await read(db, 'second.txt'))?.text).toBe('two')
  expect(await db.get('o')).toMatchObject({ note: 'smaller' })
})

test('a stream that takes longer than the lease keeps its claim', async () => {
  const db = await freshDb('attachments')
  const part = randomBytes(MEGABYTE)
  let runs = 0
  async function* slowly() {
    for (let i = 0; i < 6; i++) {
      yield part
      await sleep(1000)
    }
  }
  await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        runs += 1
        await ctx.attach('long', slowly())
        return { ...doc, state: 'shipped' }
      }),
    { leaseMs: 3000 },
  )
  await db.put(order)
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('shipped'))
  const found = await db.attachment('o', 'long', AbortSignal.timeout(10_000))
  const hash = createHash('md5').update(Buffer.concat(Array<Buffer>(6).fill(part)))
  expect(
    createHash('md5')
      .update(await buffer(found!.bytes))
      .digest('hex'),
  ).toBe(hash.digest('hex'))
  expect(runs).toBe(1)
})

test('an edit by another one beside it is kept, with what was attached there', async () => {
  const db = await freshDb('attachments')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      const now = await db.get<Doc>('o')
      const theirs = { stub: undefined, content_type: 'text/plain', data: Buffer.from('theirs').toString('base64') }
      await db.put({ ...now, note: 'theirs', _attachments: { ...(now._attachments as object), 'theirs.txt': theirs } })
      await ctx.attach('ours.txt', 'ours')
      return { ...doc, state: 'shipped' }
    }),
  )
  await db.put({ ...order, _attachments: { 'photo.jpg': photo } })
  await reaches(db, 'shipped')
  expect(await db.get('o')).toMatchObject({ note: 'theirs' })
  expect((await read(db, 'theirs.txt'))?.text).toBe('theirs')
  expect((await read(db, 'ours.txt'))?.text).toBe('ours')
  expect((await read(db, 'photo.jpg'))?.text).toBe('a photo')
})

test('a stream that breaks fails the try with what it threw, and leaves the document as it was', async () => {
  const db = await freshDb('attachments')
  async function* breaks() {
    yield randomBytes(2 * MEGABYTE)
    await sleep(50)
    throw Object.assign(new Error('the source is gone'), { code: 'EGONE' })
  }
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc, ctx) => {
        if (ctx.attempt === 1) await ctx.attach('long', breaks())
        await ctx.attach('short', 'second try')
        return { ...doc, state: 'shipped' }
      },
      { backoff: { baseMs: 500 } },
    ),
  )
  await db.put(order)
  await eventually(async () =>
    expect(docstateIn(await db.get('o'))).toMatchObject({ failure: { code: 'EGONE' }, attempts: 1 }),
  )
  expect(await read(db, 'long')).toBeUndefined()
  await reaches(db, 'shipped')
  expect((await read(db, 'short'))?.text).toBe('second try')
})

test.each([
  ['a number', 'a', 5],
  ['no name', '', 'text'],
  ['a name of CouchDB', '_design', 'text'],
])('%s is refused, and the document goes to error', async (_, name, body) => {
  const db = await freshDb('attachments')
  await startRig(db, (control) => control.unsafe('order', 'paid', (_doc, ctx) => ctx.attach(name, body as string)))
  await db.put(order)
  await reaches(db, 'error')
  expect(await db.get('o')).toMatchObject({ error: { code: 'bad_attachment' } })
})

test('a handler reads attachments of documents of other databases', async () => {
  const [db, other] = [await freshDb('attachments'), await freshDb('elsewhere')]
  await other.put({ _id: 'logo', _attachments: { 'logo.svg': { ...photo, content_type: 'image/svg+xml' } } })
  await startRig(db, (control) =>
    control.safe('order', 'paid', async (doc, ctx) => {
      const elsewhere = ctx.db(other.name)
      const logo = (await elsewhere.attachment('logo', 'logo.svg'))!
      expect(await elsewhere.attachment('nobody', 'logo.svg')).toBeUndefined()
      expect(await ctx.db('nowhere').attachment('logo', 'logo.svg')).toBeUndefined()
      return { ...doc, state: 'shipped', logo: `${logo.type}: ${await text(logo.body)}` }
    }),
  )
  await db.put(order)
  await reaches(db, 'shipped')
  expect(await db.get('o')).toMatchObject({ logo: 'image/svg+xml: a photo' })
})
