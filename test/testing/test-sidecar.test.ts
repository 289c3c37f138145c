/** The test kit for handlers, on a real server: each simulated event really occurs. */
import { text } from 'node:stream/consumers'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { Reject, type Doc } from '../../sidecar/index.ts'
import { type Control } from '../../sidecar/docstate/control.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { startTestSidecar, type TestSidecarOptions } from '../../sidecar/testing/testing.ts'
import build from '../acceptance/build.ts'
import { couchUrl, createTestCouch } from '../support/couchdb.ts'
import { createLatch, docstateIn } from '../docstate/rig.ts'
import { eventually } from '../support/eventually.ts'

beforeAll(build) // the mail catcher is a separate package

async function startKit(
  register: (control: Control) => void,
  options: TestSidecarOptions = {},
  machines: Machines = {},
) {
  const sidecar = await startTestSidecar({ machines, register }, { couchdbUrl: couchUrl(), ...options })
  onTestFinished(() => sidecar.close())
  return sidecar
}

const order = { _id: 'o', type: 'order', state: 'paid', email: 'ann@example.com' }

test('a document passes all its states, with a mail, other databases and an attachment', async () => {
  const shop = `shop-${Math.random().toString(36).slice(2)}`
  const sidecar = await startKit(
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        await ctx.mail.send({ to: String(doc.email), subject: 'yours', text: 'Thank you.' })
        const pens = (await ctx.db(shop).find('pens'))!
        await ctx.db(shop).put({ ...pens, count: Number(pens.count) - 1 })
        const photo = (await ctx.attachment('photo'))!
        await ctx.attach('copy', await text(photo.body))
        return { ...doc, state: 'confirmed' }
      }),
    { databases: { [shop]: [{ _id: 'pens', count: 10 }] }, documents: [{ _id: 'other', type: 'order', state: 'new' }] },
  )
  const data = Buffer.from([0, 255, 128, 10]).toString('base64')
  await sidecar.put({ ...order, _attachments: { photo: { content_type: 'image/jpeg', data } } })
  await sidecar.until('o', 'confirmed')
  await sidecar.settled()
  expect(sidecar.mails).toMatchObject([{ to: ['ann@example.com'], subject: 'yours' }])
  expect(await sidecar.db(shop).find('pens')).toMatchObject({ count: 9 })
  expect(await sidecar.find('other')).toMatchObject({ state: 'new' })
  expect(await sidecar.find('nowhere')).toBeUndefined()
})

test('advancing the clock makes retries and state timeouts due', async () => {
  const machines = {
    order: {
      paid: { mode: 'safe', create: 'client', next: { sent: 'sidecar' } },
      sent: { timeout: { afterMs: 86_400_000, next: 'over' } },
      over: {},
    },
  } as const
  let calls = 0
  const sidecar = await startKit(
    (control) =>
      control.safe(
        'order',
        'paid',
        async (doc) => {
          if (++calls === 1) throw new Error('not yet')
          return { ...doc, state: 'sent' }
        },
        { backoff: { baseMs: 3_600_000, capMs: 3_600_000 } },
      ),
    {},
    machines,
  )
  await sidecar.put(order)
  await sidecar.until('o', (doc) => docstateIn(doc)?.attempts === 1)
  await sidecar.settled()
  await sidecar.advance('2h')
  await sidecar.until('o', 'sent')
  expect(calls).toBe(2)
  await sidecar.settled()
  await sidecar.advance('1d')
  await sidecar.until('o', 'over')
})

test('a schedule runs when the advanced clock reaches its time', async () => {
  const due: string[] = []
  const sidecar = await startKit((control) =>
    control.schedule('nightly', { cron: '0 6 * * *' }, async ({ due_at }) => void due.push(due_at)),
  )
  const isThere = async () => (await sidecar.db(sidecar.control).find('schedule:nightly')) !== undefined
  await eventually(async () => expect(await isThere()).toBe(true))
  await sidecar.advance('1d')
  await eventually(() => expect(due).toHaveLength(1))
  expect(due[0]).toMatch(/T06:00:00.000Z$/)
  await sidecar.settled()
})

test('a running handler keeps its claim while the clock advances, until its timeout', async () => {
  const ended = createLatch()
  let isLost = false
  const sidecar = await startKit((control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc, ctx) => {
        ctx.signal.addEventListener('abort', () => (isLost = true))
        await ended.opened
        return { ...doc, state: 'sent' }
      },
      { timeout: '5m', attempts: 1 },
    ),
  )
  await sidecar.put(order)
  await sidecar.until('o', (doc) => docstateIn(doc)?.claim !== undefined)
  await sidecar.advance('2m')
  expect(isLost).toBe(false)
  await sidecar.advance('4m')
  expect(await sidecar.until('o', 'error')).toMatchObject({ error: { code: 'timeout' } })
  ended.open()
})

test('after a crash an unsafe document is parked, and one with onLost retry runs again', async () => {
  const began: string[] = []
  const handle = async (doc: Doc, { key, signal }: { key: string; signal: AbortSignal }) => {
    began.push(`${doc._id} ${key}`)
    if (began.filter((one) => one.startsWith(doc._id)).length === 1) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    }
    return { ...doc, state: 'sent' }
  }
  const sidecar = await startKit((control) => {
    control.unsafe('order', 'paid', handle)
    control.unsafe('parcel', 'paid', handle, { onLost: 'retry' })
  })
  await sidecar.put(order)
  await sidecar.put({ ...order, _id: 'p', type: 'parcel' })
  for (const id of ['o', 'p']) await sidecar.until(id, (doc) => docstateIn(doc)?.claim !== undefined)
  await eventually(() => expect(began).toHaveLength(2))
  await sidecar.crash()
  expect(docstateIn(await sidecar.find('o'))).toHaveProperty('claim')
  expect(() => sidecar.loseSave('o')).toThrow('call restart() first')
  await sidecar.restart()
  await expect(sidecar.restart()).rejects.toThrow('got one that runs')
  await sidecar.advance('2m')
  await sidecar.until('p', 'sent')
  await sidecar.until('o', (doc) => docstateIn(doc)?.parked !== undefined)
  await sidecar.settled()
  expect(began.filter((one) => one.startsWith('o'))).toHaveLength(1)
  const [first, second] = began.filter((one) => one.startsWith('p'))
  expect(second).toBe(first)
})

test('a save whose answer was lost is detected, and the handler runs once', async () => {
  let runs = 0
  const sidecar = await startKit((control) =>
    control.unsafe('order', 'paid', async (doc) => {
      runs += 1
      sidecar.loseSave('o')
      return { ...doc, state: 'sent' }
    }),
  )
  await sidecar.put(order)
  const { _rev } = await sidecar.until('o', 'sent')
  await sidecar.settled()
  expect(runs).toBe(1)
  expect((await sidecar.find('o'))?._rev).toBe(_rev)
})

test('on a conflict a safe handler runs again on the new revision, and an unsafe one keeps the other fields', async () => {
  const runs: unknown[] = []
  const sidecar = await startKit((control) => {
    const handle = async (doc: Doc) => {
      runs.push(doc.note)
      if (runs.length === 1) sidecar.conflict(doc._id, (now) => ({ ...now, note: 'theirs' }))
      return { ...doc, state: 'sent' }
    }
    control.safe('order', 'paid', handle)
    control.unsafe('parcel', 'paid', handle)
  })
  await sidecar.put(order)
  expect(await sidecar.until('o', 'sent')).toMatchObject({ note: 'theirs' })
  expect(runs).toEqual([undefined, 'theirs'])
  runs.splice(0)
  await sidecar.put({ ...order, _id: 'p', type: 'parcel' })
  expect(await sidecar.until('p', 'sent')).toMatchObject({ note: 'theirs' })
  expect(runs).toEqual([undefined])
})

test('a failed wait states the expected and the actual document', async () => {
  const sidecar = await startKit((control) =>
    control.safe('order', 'paid', async () => Promise.reject(new Reject('no_items', 'none'))),
  )
  await sidecar.put(order)
  await sidecar.until('o', 'error')
  await expect(sidecar.until('o', 'sent', { within: 300 })).rejects.toThrow(
    /expected o to be in the state sent within 300 ms, got .*no_items/s,
  )
  await expect(sidecar.until('x', () => true, { within: 50 })).rejects.toThrow(
    'expected x to become as wanted within 50 ms, got undefined',
  )
  await expect(sidecar.advance('5 apples' as '5m')).rejects.toThrow("expected a time such as 90s or 2h, got '5 apples'")
})

test('closing the kit deletes its databases, and an existing database is never used', async () => {
  const couch = createTestCouch()
  const kept = `kept-${Math.random().toString(36).slice(2)}`
  await couch.db(kept).create()
  onTestFinished(async () => void (await couch.db(kept).drop()))
  const start = (databases: Record<string, Doc[]>) =>
    startTestSidecar({ machines: {}, register: () => undefined }, { couchdbUrl: couchUrl(), databases })
  await expect(start({ [kept]: [] })).rejects.toThrow(`expected no database ${kept} at`)
  await couch.db(kept).info()
  const sidecar = await start({ [`${kept}-other`]: [{ _id: 'a' }] })
  expect(await sidecar.db(`${kept}-other`).find('a')).toBeDefined()
  await sidecar.close()
  for (const name of [`${kept}-other`, sidecar.database, sidecar.control]) {
    await expect(couch.db(name).info()).rejects.toMatchObject({ code: 'not_found' })
  }
})
