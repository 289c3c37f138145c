import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { Handler, HandlerOptions } from '../../sidecar/docstate/types.ts'
import {
  defineHandlers,
  defineMachines,
  Reject,
  RetryLater,
  type Doc,
  type Machines,
  type TypedHandler,
} from '../../sidecar/index.ts'
import { run } from '../../sidecar/testing/testing.ts'

const machines = defineMachines({
  order: {
    paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar', checked: 'sidecar' } },
    checked: { mode: 'safe', next: { invoiced: 'sidecar' }, timeout: { afterMs: 1000, next: 'invoiced' } },
    invoiced: {},
  },
})

const order = { _id: 'o', type: 'order', state: 'paid', email: 'ann@example.com' }

/** Registers one handler for paid orders. */
const handlers = (handler: Handler, options: HandlerOptions = {}) =>
  defineHandlers((control) =>
    control.unsafe('order', 'paid', handler as TypedHandler<Machines, string, string, Doc>, options),
  )

test('run returns the result of a handler and the stored document', async () => {
  const typed = defineHandlers(machines, (control) =>
    control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'checked', total: 3 })),
  )
  const result = await run(typed, order)
  expect(result).toMatchObject({
    outcome: 'next',
    failure: undefined,
    retryAt: undefined,
    mails: [],
    saved: [],
    put: [],
  })
  expect(result.next).toEqual({ ...order, _rev: expect.any(String) as string, state: 'checked', total: 3 })
  expect(result.stored).toMatchObject({ state: 'checked', docstate: { timeout_at: expect.any(String) as string } })
})

test('run returns the mails, saves and writes of a handler, which can read the given documents', async () => {
  const result = await run(
    handlers(async (doc, ctx) => {
      await ctx.mail.send({ to: String(doc.email), subject: 'yours', text: 'x' })
      const customer = (await ctx.find('ann'))!
      await ctx.put({ ...customer, orders: 1 })
      await ctx.put({ _id: 'log', type: 'log' })
      await expect(ctx.put({ _id: 'ann', type: 'customer' })).rejects.toMatchObject({ code: 'conflict' })
      await ctx.save({ ...doc, note: 'half-way' })
      expect([ctx.database, ctx.attempt]).toEqual(['shop', 1])
      return { ...doc, state: 'invoiced' }
    }),
    order,
    { documents: [{ _id: 'ann', type: 'customer' }], database: 'shop' },
  )
  expect(result.mails).toEqual([{ to: 'ann@example.com', subject: 'yours', text: 'x' }])
  expect(result.put).toMatchObject([{ _id: 'ann', orders: 1 }, { _id: 'log' }])
  expect(result.saved).toMatchObject([{ note: 'half-way', state: 'paid' }])
  expect(result.stored.state).toBe('invoiced')
})

test('run returns the retry of a failure, the last failure, a Reject and a RetryLater', async () => {
  const fails = handlers(() => Promise.reject(Object.assign(new Error('no'), { code: 'ENO' })), { attempts: 3 })
  const first = await run(fails, order)
  expect(first).toMatchObject({ outcome: 'failed', failure: { code: 'ENO', reason: 'no' } })
  expect(first.retryAt!.getTime()).toBeGreaterThan(Date.now())
  expect(first.stored).toMatchObject({ state: 'paid', docstate: { attempts: 1 } })
  const last = await run(fails, order, { attempt: 3 })
  expect(last).toMatchObject({
    outcome: 'failed',
    retryAt: undefined,
    stored: { state: 'error', error: { code: 'ENO' } },
  })
  const rejects = handlers(() => Promise.reject(new Reject('never', 'so')))
  expect(await run(rejects, order)).toMatchObject({
    outcome: 'rejected',
    failure: { code: 'never' },
    stored: { state: 'error' },
  })
  const at = new Date('2030-01-01T00:00:00Z')
  const later = handlers(() => Promise.reject(new RetryLater('later', 'so', at)))
  expect((await run(later, order)).retryAt).toEqual(at)
})

test('run simulates refused mail, keeps the key for each attempt and applies the timeout', async () => {
  const mails = handlers(async (doc, ctx) => {
    await ctx.mail.send({ to: 'x', subject: 'y', text: 'z' })
    return { ...doc, state: 'invoiced' }
  })
  const onMail = () => {
    throw new Reject('mail_refused', 'no such mailbox')
  }
  expect(await run(mails, order, { onMail })).toMatchObject({ outcome: 'rejected', mails: [] })
  const [one, two] = [
    await run(mails, { ...order, _rev: '1-a' }),
    await run(mails, { ...order, _rev: '1-a' }, { attempt: 2 }),
  ]
  expect(one.key).toBe(two.key)
  const endless = handlers(() => new Promise(() => undefined), { timeout: '20ms' })
  expect(await run(endless, order)).toMatchObject({ outcome: 'failed', failure: { code: 'timeout' } })
})

test('run supports steps and documents of other databases', async () => {
  let calls = 0
  const charging = handlers(async (doc, ctx) => {
    const charge = await ctx.once('charge', () => ++calls)
    const stock = await ctx.db('stock').find('pens')
    await ctx.db('stock').put({ ...stock!, count: 9 })
    await expect(ctx.db('stock').put(stock!)).rejects.toMatchObject({ code: 'conflict' })
    expect(await ctx.db('shop').find('x')).toBeUndefined()
    await expect(ctx.db('shop').put({ _id: 'x' })).rejects.toMatchObject({ code: 'not_found' })
    await ctx.save({ ...doc, note: 'charged' })
    return { ...doc, state: 'invoiced', charge }
  })
  const databases = { stock: [{ _id: 'pens', count: 10 }] }
  expect(await run(charging, order, { databases })).toMatchObject({
    ...{ next: { charge: 1 }, steps: { charge: 1 }, saved: [{ note: 'charged' }] },
    putElsewhere: [{ database: 'stock', doc: { _id: 'pens', count: 9 } }],
  })
  expect(await run(charging, order, { databases, attempt: 2, steps: { charge: 7 } })).toMatchObject({
    saved: [{ note: 'charged' }],
    next: { charge: 7 },
  })
  expect(calls).toBe(1)
})

test('run rejects an undeclared next state and a document without a handler', async () => {
  const wrong = defineHandlers(machines as Machines, (control) =>
    control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'paidd' })),
  )
  expect(await run(wrong, order)).toMatchObject({ outcome: 'rejected', failure: { code: 'bad_result' } })
  await expect(run(wrong, { ...order, state: 'invoiced' })).rejects.toThrow(
    'expected a handler for order in state invoiced; there are: order in state paid',
  )
})

test('run gives a handler its attachments and returns the new attachments', async () => {
  const photo = { content_type: 'image/jpeg', data: Buffer.from('a photo').toString('base64') }
  const long = Buffer.alloc(3_000_000, 'x')
  const attaching = handlers(async (doc, ctx) => {
    expect(doc._attachments).toEqual({
      'photo.jpg': { ...{ content_type: 'image/jpeg', stub: true, length: 7, revpos: 1 }, digest: md5('a photo') },
    })
    const [own, others] = [(await ctx.attachment('photo.jpg'))!, await ctx.db('shared').attachment('logo', 'logo.jpg')]
    expect(await ctx.attachment('nowhere')).toBeUndefined()
    await ctx.attach('both.txt', `${await text(own.body)}, ${await text(others!.body)}`, 'text/plain')
    await ctx.attach('long', Readable.from([long]))
    expect(await text((await ctx.attachment('both.txt'))!.body)).toBe('a photo, a photo')
    return { ...doc, state: 'invoiced' }
  })
  const given = { ...order, _attachments: { 'photo.jpg': photo } }
  const shared = [{ _id: 'logo', _attachments: { 'logo.jpg': photo } }]
  const { outcome, attached, stored } = await run(attaching, given, { databases: { shared } })
  expect(outcome).toBe('next')
  expect(attached).toMatchObject([
    { name: 'both.txt', type: 'text/plain', body: Buffer.from('a photo, a photo') },
    { name: 'long', type: 'application/octet-stream' },
  ])
  expect(attached[1]!.body.equals(long)).toBe(true) // toEqual compares byte by byte and takes ten seconds
  expect(stored).toMatchObject({
    state: 'invoiced',
    _attachments: { 'photo.jpg': { length: 7 }, long: { length: 3_000_000, stub: true } },
  })
})

const md5 = (body: string) => `md5-${createHash('md5').update(body).digest('base64')}`
