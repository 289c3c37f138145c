/** Attachments that handlers read and write as streams, during claims, renewals and edits by clients. */
import { createHash, randomBytes } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { LONGEST_LEASE_MS } from '../../sidecar/docstate/claims/lease.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { cutAfterUpstream, delay, startFaultyProxy } from '../support/faulty-proxy.ts'
import { accepted } from './claims/accepted.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const photo = { content_type: 'image/jpeg', data: Buffer.from('a photo').toString('base64') }
const order = { _id: 'o', type: 'order', state: 'paid' }
const MEGABYTE = 1024 * 1024

const read = async (db: Database, name: string, id = 'o') => {
  const found = await db.attachment(id, name, AbortSignal.timeout(10_000))
  return found && { type: found.type, text: await text(Readable.from(found.bytes)) }
}

const reaches = (db: Database, state: string, id = 'o') =>
  eventually(async () => expect(await stateOf(db, id)).toBe(state))

/** A part each second. */
async function* slowly(part: Buffer, times: number) {
  for (let i = 0; i < times; i++) {
    yield part
    await sleep(1000)
  }
}

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

test('an attachment replaces the previous one of its name, and ctx.save keeps it', async () => {
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

test('a stream that takes longer than the lease keeps its claim, also afterwards', async () => {
  const db = await freshDb('attachments')
  const part = randomBytes(MEGABYTE)
  let [runs, isLost] = [0, false]
  await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        runs += 1
        await ctx.attach('long', slowly(part, 9))
        await sleep(2000) // the claim is renewed meanwhile
        isLost = ctx.signal.aborted
        return { ...doc, state: 'shipped' }
      }),
    { leaseMs: 5000 },
  )
  await db.put(order)
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('shipped'))
  const found = await db.attachment('o', 'long', AbortSignal.timeout(10_000))
  const hash = createHash('md5').update(Buffer.concat(Array<Buffer>(9).fill(part)))
  expect(
    createHash('md5')
      .update(await buffer(found!.bytes))
      .digest('hex'),
  ).toBe(hash.digest('hex'))
  expect({ runs, isLost }).toEqual({ runs: 1, isLost: false })
})

test('short attachments that a handler stores together keep the claim beyond its lease', async () => {
  const db = await freshDb('attachments')
  const proxy = await startFaultyProxy()
  const names = Array.from({ length: 12 }, (_, i) => `page-${i}`)
  proxy.plan(({ method, path }) => (method === 'PUT' && path.includes('/page-') ? delay(700) : undefined))
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        await Promise.all(names.map((name) => ctx.attach(name, name)))
        return { ...doc, state: 'shipped' }
      }),
    { leaseMs: 5000 },
  )
  await db.put(order)
  await reaches(db, 'shipped')
  expect(Object.keys((await db.get<Doc>('o'))._attachments as object).sort()).toEqual([...names].sort())
})

test('a stream whose longer lease a minority of the copies stored keeps only the lease that is proven', async () => {
  const db = await freshDb('attachments')
  const proxy = await startFaultyProxy()
  proxy.next(accepted, ({ body }) => body.includes(`"lease_ms":${LONGEST_LEASE_MS}`))
  let isLost: boolean | undefined
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        await ctx.attach('long', slowly(randomBytes(MEGABYTE), 12)).finally(() => (isLost = ctx.signal.aborted))
        return { ...doc, state: 'shipped' }
      }),
    { leaseMs: 5000 },
  )
  await db.put(order)
  await eventually(() => expect(isLost).toBe(true))
})

test('a client’s edit and attachment during the handler are kept', async () => {
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

test('a broken stream fails the attempt with the stream’s error and leaves the document unchanged', async () => {
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
  ['an attachment whose body is a number', 'a', 5],
  ['an attachment without a name', '', 'text'],
  ['an attachment with a name that begins with _', '_design', 'text'],
  ['an attachment with an invalid type', 'a', 'text', 'jpeg'],
  ['an attachment with a line break in its type', 'a', 'text', 'text/plain\r\nx-evil: 1'],
])('%s is refused, and the document goes to error', async (_, name, body, type?: string) => {
  const db = await freshDb('attachments')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (_doc, ctx) => ctx.attach(name, body as string, type)),
  )
  await db.put(order)
  await reaches(db, 'error')
  expect(await db.get('o')).toMatchObject({ error: { code: 'bad_attachment' } })
})

test('a handler reads attachments of documents in other databases', async () => {
  const [db, other] = [await freshDb('attachments'), await freshDb('elsewhere')]
  await other.put({ _id: 'logo', _attachments: { 'logo.svg': { ...photo, content_type: 'image/svg+xml' } } })
  await startRig(db, (control) =>
    control.safe('order', 'paid', async (doc, ctx) => {
      const elsewhere = ctx.db(other.name)
      const logo = (await elsewhere.attachment('logo', 'logo.svg'))!
      expect(await elsewhere.attachment('nowhere', 'logo.svg')).toBeUndefined()
      expect(await ctx.db('nowhere').attachment('logo', 'logo.svg')).toBeUndefined()
      return { ...doc, state: 'shipped', logo: `${logo.type}: ${await text(logo.body)}` }
    }),
  )
  await db.put(order)
  await reaches(db, 'shipped')
  expect(await db.get('o')).toMatchObject({ logo: 'image/svg+xml: a photo' })
})

test('an attachment body that a handler does not read to its end delays nothing', async () => {
  const db = await freshDb('attachments')
  const left: Readable[] = []
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      const [unread, half] = [(await ctx.attachment('long'))!.body, (await ctx.attachment('long'))!.body]
      for await (const _ of half) break
      const piped = (await ctx.attachment('long'))!.body.pipe(new PassThrough()) // a stream without a reader
      left.push(unread, piped)
      return { ...doc, state: 'shipped' }
    }),
  )
  const { _id, ...fields } = order
  const rev = await db.put({ _id, ...fields, state: 'draft' })
  await db.attach({ ...order, _rev: rev }, 'long', { type: 'x/y', bytes: randomBytes(20 * MEGABYTE) })
  await db.put({ ...(await db.get('o')), state: 'paid' })
  await reaches(db, 'shipped')
  for (const body of left) body.destroy()
})

test('an attachment after the end of the handler is refused, and the document stays as saved', async () => {
  const db = await freshDb('attachments')
  const late = createLatch()
  let refused: unknown
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc, ctx) => {
      void late.opened.then(() => ctx.attach('late', 'x')).catch((thrown: unknown) => (refused = thrown))
      return { ...doc, state: 'shipped' }
    }),
  )
  await db.put(order)
  await reaches(db, 'shipped')
  const { _rev } = await db.get('o')
  late.open()
  await eventually(() => expect(refused).toMatchObject({ message: 'the handler has ended' }))
  expect((await db.get('o'))._rev).toBe(_rev)
})

test.each([
  ['is sent again', 100, 1],
  ['of a long stream fails the attempt, and the next attempt stores it', 3 * MEGABYTE, 2],
])('an attachment whose answer was lost %s', async (_, length, tries) => {
  const [{ name }, proxy] = [await freshDb('attachments'), await startFaultyProxy()]
  const db = createTestCouch({ url: proxy.url }).db(name)
  let runs = 0
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc, ctx) => {
        runs += 1
        await ctx.attach('body', Readable.from([Buffer.alloc(length, 'x')]))
        return { ...doc, state: 'shipped' }
      },
      { backoff: { baseMs: 100 } },
    ),
  )
  proxy.next(cutAfterUpstream, ({ method, path }) => method === 'PUT' && path.endsWith('/body'))
  await db.put(order)
  await reaches(db, 'shipped')
  expect(runs).toBe(tries)
  expect((await read(db, 'body'))?.text).toHaveLength(length)
})
