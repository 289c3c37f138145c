import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import type { HandlerOptions } from '../../sidecar/docstate/types.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { docstateIn, startRig, stateOf } from './rig.ts'

const quick: HandlerOptions = { attempts: 3, backoff: { baseMs: 50, capMs: 50 } }
const modes = ['safe', 'unsafe'] as const

test.each(modes)(
  'a %s handler that throws is retried, and after the last attempt the document holds the error',
  async (mode) => {
    const db = await freshDb('failing')
    let tries = 0
    await startRig(db, (control) =>
      control[mode](
        'order',
        'paid',
        () => {
          tries += 1
          return Promise.reject(Object.assign(new Error('out of paper'), { code: 'EPAPER' }))
        },
        quick,
      ),
    )
    await db.put({ _id: 'o', type: 'order', state: 'paid', total: 3 })
    await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
    expect(tries).toBe(3)
    expect(await db.get('o')).toMatchObject({
      total: 3,
      error: { code: 'EPAPER', reason: 'out of paper', at: expect.stringMatching(/^20.*Z$/) as string },
      docstate: { state: 'error', failed_in: 'paid', attempts: 3 },
    })
  },
)

test('claims and failures contain the version of their handler', async () => {
  const db = await freshDb('failing')
  let claim: unknown
  await startRig(db, (control) => {
    const fail = async ({ _id }: { _id: string }) => {
      claim ??= docstateIn(await db.get(_id))?.claim
      throw new Error('out of paper')
    }
    control.unsafe('order', 'paid', fail, { attempts: 2, backoff: { baseMs: 3_600_000 }, version: '7' })
    control.safe('order', 'new', fail, { attempts: 1, version: '8' })
  })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('o'))).toMatchObject({ failure: { version: '7' } }))
  expect(claim).toMatchObject({ version: '7' })
  await db.put({ _id: 'n', type: 'order', state: 'new' })
  await eventually(async () => expect(await db.get('n')).toMatchObject({ error: { version: '8' } }))
})

test('the log contains the stack of a handler’s error, and the document does not', async () => {
  const db = await freshDb('failing')
  const lines: { msg: string; err?: { stack: string } }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const mistake = () => Promise.reject(new TypeError('of mine'))
  await startRig(db, (control) => control.safe('order', 'paid', mistake, { attempts: 1 }), { log })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  await eventually(() =>
    expect(lines.find(({ msg }) => msg.startsWith('gave up after 1 try'))?.err?.stack).toMatch(
      /TypeError: of mine\n.*failing\.test\.ts/,
    ),
  )
  expect(JSON.stringify(await db.get('o'))).not.toContain('failing.test.ts')
})

test.each(modes)('a Reject from a %s handler ends in error without a retry', async (mode) => {
  const db = await freshDb('failing')
  let tries = 0
  await startRig(db, (control) =>
    control[mode]('order', 'paid', () => {
      tries += 1
      throw new Reject('no_address', 'an order needs an address')
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({ code: 'no_address', reason: 'an order needs an address' })
  expect(tries).toBe(1)
})

test('between two attempts, the document shows the failure and the time of the next attempt', async () => {
  const db = await freshDb('failing')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', () => Promise.reject(new Error('the mail server sleeps')), {
      backoff: { baseMs: 600_000, capMs: 600_000 },
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => {
    expect(docstateIn(await db.get('o'))).toEqual({
      state: 'paid',
      entry: expect.stringMatching(/^1-/) as string,
      attempts: 1,
      failing_since: expect.stringMatching(/^20.*Z$/) as string,
      failure: { code: 'Error', reason: 'the mail server sleeps', at: expect.any(String) as string },
      retry_at: expect.any(String) as string,
    })
  })
})

test('failing documents do not delay other documents', async () => {
  const db = await freshDb('failing')
  await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      (doc) => (doc.bad ? Promise.reject(new Error('bad')) : Promise.resolve({ ...doc, state: 'invoiced' })),
      { concurrency: 1, backoff: { baseMs: 600_000, capMs: 600_000 } },
    ),
  )
  const docs = Array.from({ length: 60 }, (_, i) => ({ _id: `o${i}`, type: 'order', state: 'paid', bad: i % 2 === 0 }))
  await db.bulk(docs.map((doc) => JSON.stringify(doc)))
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 3 })
    expect(rows.map(({ key, value }) => [key, value])).toEqual([
      [['order', 'invoiced', 'ready'], 30],
      [['order', 'paid', 'retry'], 30],
    ])
  })
})

const results: [string, (control: Control) => void, string][] = [
  ['text instead of a document', (c) => c.safe('a', 'b', () => Promise.resolve('done' as never)), 'bad_result'],
  [
    'a document without state',
    (c) => c.safe('a', 'b', (d) => Promise.resolve({ _id: d._id, type: 'a' } as never)),
    'bad_result',
  ],
  [
    'a document of another type',
    (c) => c.safe('a', 'b', (d) => Promise.resolve({ ...d, type: 'z', state: 'c' })),
    'bad_result',
  ],
  [
    'a document with a BigInt',
    (c) => c.safe('a', 'b', (d) => Promise.resolve({ ...d, n: 1n, state: 'c' })),
    'save_refused',
  ],
]
test.each(results)('a document goes to error if its handler returns %s', async (_, register, code) => {
  const db = await freshDb('failing')
  await startRig(db, register)
  await db.put({ _id: 'x', type: 'a', state: 'b' })
  await eventually(async () => expect(await stateOf(db, 'x')).toBe('error'))
  expect((await db.get('x')).error).toMatchObject({ code })
})

test('an undeclared transition puts the document into error', async () => {
  const db = await freshDb('failing')
  const machines = {
    order: { paid: { mode: 'safe', next: { invoiced: 'sidecar', refunded: 'client' } }, invoiced: {}, refunded: {} },
  } as const
  await startRig(
    db,
    (control) => control.safe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'refunded' })),
    { machines },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({
    code: 'bad_result',
    reason: expect.stringContaining('refunded') as string,
  })
})

test('a result that CouchDB refuses ends in error without a retry, because the effect has happened', async () => {
  const db = await freshDb('failing')
  const guard = `function (doc) { if (doc.state === 'invoiced' && !doc.number) throw { forbidden: 'an invoice needs a number' } }`
  await db.put({ _id: '_design/guard', validate_doc_update: guard })
  let runs = 0
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (doc) => {
      runs += 1
      return Promise.resolve({ ...doc, state: 'invoiced' })
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({
    code: 'save_refused',
    reason: expect.stringContaining('an invoice needs a number') as string,
  })
  expect(runs).toBe(1)
})

test('a document is parked if CouchDB refuses the error, too', async () => {
  const db = await freshDb('failing')
  const guard = `function (doc) { if (doc.type === 'order' && doc.state !== 'paid') throw { forbidden: 'orders stay paid' } }`
  await db.put({ _id: '_design/guard', validate_doc_update: guard })
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'invoiced' })),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () =>
    expect(docstateIn(await db.get('o'))?.parked).toMatchObject({
      reason: expect.stringContaining('orders stay paid') as string,
    }),
  )
})

test('refused claims are logged once, not for each document', async () => {
  const db = await freshDb('failing')
  const guard = `function (doc) { if (doc.docstate) throw { forbidden: 'no docstate here' } }`
  await db.put({ _id: '_design/guard', validate_doc_update: guard })
  const write = vi.fn()
  const handler = vi.fn(() => Promise.resolve())
  await startRig(db, (control) => control.unsafe('order', 'paid', handler), {
    log: pino({ level: 'warn' }, { write }),
  })
  const docs = Array.from({ length: 30 }, (_, i) => ({ _id: `o${i}`, type: 'order', state: 'paid' }))
  await db.bulk(docs.map((doc) => JSON.stringify(doc)))
  await eventually(() => expect(write).toHaveBeenCalled())
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(write).toHaveBeenCalledOnce()
  expect(write.mock.calls[0]![0]).toMatch(/no docstate here.*CouchDB refuses the claim/)
  expect(handler).not.toHaveBeenCalled()
})

test('a result with a missing attachment ends in error and does not affect other documents', async () => {
  const db = await freshDb('failing')
  const _attachments = { 'x.txt': { stub: true, content_type: 'text/plain', revpos: 1, length: 1, digest: 'md5-aaaa' } }
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => ({
      ...doc,
      ...(doc._id === 'bad' && { _attachments }),
      state: 'invoiced',
    })),
  )
  await db.bulk(['bad', 'good'].map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  await eventually(async () => expect(await stateOf(db, 'bad')).toBe('error'))
  expect(await db.get('bad')).toMatchObject({ error: { code: 'save_refused' } })
  await eventually(async () => expect(await stateOf(db, 'good')).toBe('invoiced'))
})
