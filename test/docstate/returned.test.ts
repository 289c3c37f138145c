/** Any value that a handler returns or throws leaves a bounded, readable record in its document. */
import { runInNewContext } from 'node:vm'
import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import type { Context } from '../../sidecar/docstate/types.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startRig, stateOf } from './rig.ts'

const HALF = '😀'.charAt(0)
const forged = (fields: object) => Object.assign(Object.create(null) as object, fields)
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
const trap = (): never => {
  throw new Error('a trap')
}
const hostile = () =>
  new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap })
const cyclic = (doc: object) => {
  const made: Record<string, unknown> = { ...doc, state: 'done' }
  return Object.assign(made, { made })
}

/** Each function makes a result from the document in state `paid`. */
const kept: [string, (doc: object) => object][] = [
  ['has a toJSON that returns a document', (doc) => ({ toJSON: () => ({ ...doc, state: 'done', kept: true }) })],
  ['has a toJSON that omits the id', () => ({ toJSON: () => ({ type: 'order', state: 'done', kept: true }) })],
  ['has a field with a toJSON', (doc) => ({ ...doc, state: 'done', kept: { toJSON: () => true } })],
  ['is a proxy', (doc) => new Proxy({ ...doc, state: 'done', kept: true }, {})],
  ['has no prototype and a function field', (doc) => forged({ ...doc, state: 'done', kept: true, run: () => 1 })],
  [
    'has getters',
    (doc) => ({
      ...doc,
      state: 'done',
      get kept() {
        return true
      },
    }),
  ],
]
test.each(kept)('a result that %s is saved as its JSON', async (_, make) => {
  const db = await freshDb('returned')
  await startRig(db, (control) => control.unsafe('order', 'paid', async (doc) => make(doc) as never))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('done'))
  const { _rev, ...doc } = await db.get('o')
  expect(doc).toEqual({ _id: 'o', type: 'order', state: 'done', kept: true })
  expect((await db.info()).doc_count).toBe(2) // the order and the design document
})

const refused: [string, (doc: object) => unknown, RegExp][] = [
  ['a toJSON that returns text', (doc) => ({ ...doc, state: 'done', toJSON: () => 'done' }), /returned "done"/],
  [
    'a toJSON that returns nothing',
    (doc) => ({ ...doc, toJSON: () => undefined }),
    /returned a value without a JSON form: it has no JSON form/,
  ],
  ['a toJSON that throws', (doc) => ({ ...doc, state: 'done', toJSON: trap }), /without a JSON form: .*a trap/],
  ['a function', () => () => 'done', /returned a value without a JSON form: it has no JSON form/],
  ['a BigInt', () => 1n, /without a JSON form: .*BigInt/],
  ['an array', (doc) => [doc], /returned an array/],
  ['null', () => null, /returned null/],
  ['a cycle', cyclic, /without a JSON form: .*circular/],
  [
    'a getter that throws',
    (doc) => ({
      ...doc,
      get state() {
        return trap()
      },
    }),
    /without a JSON form: .*a trap/,
  ],
  [
    'a getter that throws a proxy',
    (doc) => ({ ...doc, toJSON: () => raise(hostile()) }),
    /without a JSON form: .*cannot be read/,
  ],
  [
    'a proxy whose traps throw',
    (doc) => new Proxy({ ...doc, state: 'done' }, { ownKeys: trap }),
    /without a JSON form: .*a trap/,
  ],
  ['a lone surrogate', (doc) => ({ ...doc, state: 'done', name: HALF }), /without a JSON form: .*surrogate/],
  [
    'a field name with a lone surrogate',
    (doc) => ({ ...doc, state: 'done', [HALF]: 1 }),
    /without a JSON form: .*surrogate/,
  ],
]
const raise = (thrown: unknown): never => {
  throw thrown
}
test.each(refused)('a document goes to error after one run if its handler returns %s', async (_, make, reason) => {
  const db = await freshDb('returned')
  const handler = vi.fn(async (doc: object) => make(doc) as never)
  await startRig(db, (control) => control.unsafe('order', 'paid', handler))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect(await db.get('o')).toMatchObject({
    error: {
      code: String(reason).includes('without a JSON form') ? 'save_refused' : 'bad_result',
      reason: expect.stringMatching(reason) as string,
    },
  })
  expect(handler).toHaveBeenCalledOnce()
  expect((await db.info()).doc_count).toBe(2)
})

const long = `${'x'.repeat(499)}😀${'y'.repeat(9_000_000)}`
const thrown: [string, unknown, { code: string | RegExp; reason: RegExp }][] = [
  ['nothing', undefined, { code: 'thrown', reason: /^threw undefined, which is not an Error$/ }],
  ['null', null, { code: 'thrown', reason: /^threw null, which/ }],
  ['text', 'out of paper', { code: 'thrown', reason: /^out of paper$/ }],
  ['an empty text', '', { code: 'thrown', reason: /^threw '', which is not an Error$/ }],
  ['a symbol', Symbol('s'), { code: 'thrown', reason: /^threw Symbol\(s\), which/ }],
  [
    'an object',
    { status: 404, body: { why: 'x' } },
    { code: 'thrown', reason: /threw \{ status: 404, .*why: 'x'.*which/ },
  ],
  [
    'an object with a code and a message',
    { code: 'E_PAPER', message: 'no paper' },
    { code: 'E_PAPER', reason: /^no paper$/ },
  ],
  ['an error of another realm', runInNewContext('new TypeError("far")'), { code: 'TypeError', reason: /^far$/ }],
  ['an error without a message', new RangeError(), { code: 'RangeError', reason: /^RangeError, without a message$/ }],
  [
    'an error whose message is an object',
    Object.assign(new Error(), { message: {} }),
    { code: 'Error', reason: /without/ },
  ],
  ['an error with a lone surrogate', new Error(`a${HALF}b`), { code: 'Error', reason: /^a\ufffdb$/ }],
  [
    'a proxy whose traps throw',
    hostile(),
    { code: 'thrown', reason: /^threw .*, which is not an Error$|cannot be read/ },
  ],
  ['a revoked proxy', revoked(), { code: 'thrown', reason: /cannot be read|Revoked/ }],
  ['an error as a proxy', new Proxy(new Error('inside'), {}), { code: 'Error', reason: /^inside$/ }],
  [
    'an error whose message throws',
    Object.defineProperty(new Error(), 'message', { get: trap }),
    { code: 'thrown', reason: /cannot be read/ },
  ],
  ['an error of nine megabytes', new Error(long), { code: 'Error', reason: /^x{499}…$/ }],
  ['a code of nine megabytes', Object.assign(new Error('m'), { code: long }), { code: /^x{99}…$/, reason: /^m$/ }],
]
test.each(thrown)('a handler leaves a bounded record and log line if it throws %s', async (_, what, record) => {
  const db = await freshDb('returned')
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  await startRig(db, (control) => control.unsafe('order', 'paid', () => raise(what), { attempts: 2 }), { log })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  const { error, docstate } = await db.get('o')
  expect(error).toEqual({
    code: typeof record.code === 'string' ? record.code : (expect.stringMatching(record.code) as string),
    reason: expect.stringMatching(record.reason) as string,
    at: expect.any(String) as string,
  })
  expect(docstate).toMatchObject({ attempts: 2 }) // both attempts are counted
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(10_000)
})

test('a proxy of a Reject ends in error without a retry', async () => {
  const db = await freshDb('returned')
  const handler = vi.fn(() => raise(new Proxy(new Reject('no_address', 'it has none'), {})))
  await startRig(db, (control) => control.unsafe('order', 'paid', handler))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({ code: 'no_address', reason: 'it has none' })
  expect(handler).toHaveBeenCalledOnce()
})

test.each(['put', 'save'] as const)('ctx.%s writes the JSON of its argument and nothing else', async (how) => {
  const db = await freshDb('returned')
  const fields = { _id: 'other', type: 'order', state: 'done' }
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (_doc, ctx) => {
      const given = { ...fields, at: { toJSON: () => 'now' }, toJSON: () => ({ ...fields, via: how }) }
      expect(await ctx[how](given)).toMatchObject({ via: how, _rev: expect.any(String) as string })
    }),
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  const written = how === 'put' ? 'other' : 'o'
  await eventually(async () => expect(await db.find(written)).toMatchObject({ state: 'done', via: how }))
  expect((await db.info()).doc_count).toBe(how === 'put' ? 3 : 2)
})

test.each(['put', 'save'] as const)('ctx.%s of a value without JSON ends in error without a retry', async (how) => {
  const db = await freshDb('returned')
  const handler = vi.fn(async (_doc: object, ctx: Context) => {
    await ctx[how]({ _id: 'other', type: 'order', state: 'done', toJSON: trap })
  })
  await startRig(db, (control) => control.unsafe('order', 'paid', handler))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({
    code: 'save_refused',
    reason: expect.stringContaining('a trap') as string,
  })
  expect(handler).toHaveBeenCalledOnce()
})
