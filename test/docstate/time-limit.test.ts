/** The timeout of a handler: an attempt that exceeds it fails and delays no other document. */
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Control } from '../../sidecar/docstate/control.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { RetryLater } from '../../sidecar/index.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const modes = ['safe', 'unsafe'] as const
const paid = { type: 'order', state: 'paid' }
const soon = { attempts: 2, backoff: { baseMs: 50, capMs: 50 } }

test.each(modes)('a timeout aborts the signal of a %s handler and fails the attempt', async (mode) => {
  const db = await freshDb('time-limit')
  const reasons: unknown[] = []
  await startRig(db, (control) =>
    control[mode](
      'order',
      'paid',
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            reject(new Error('as I was told'))
          })
        }),
      { timeout: '200ms', ...soon },
    ),
  )
  await db.put({ _id: 'o', ...paid })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({
    code: 'timeout',
    reason: 'the handler has not ended within 200 ms',
  })
  expect(reasons).toHaveLength(2)
  expect(reasons[0]).toMatchObject({ code: 'timeout' })
})

test.each(modes)('a %s handler that ignores its signal is logged and delays no other document', async (mode) => {
  const db = await freshDb('time-limit')
  const go = createLatch()
  const lines: { msg: string; doc?: string; overdue?: number }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const late: unknown[] = []
  async function handler(doc: StoredDoc, ctx: Parameters<Parameters<Control['safe']>[2]>[1]) {
    if (doc.endless) {
      await go.opened
      await ctx.save({ ...doc, state: 'invoiced', by: 'itself' }).catch((thrown: unknown) => late.push(thrown))
      await ctx.put({ _id: 'other' }).catch((thrown: unknown) => late.push(thrown))
    }
    return { ...doc, state: 'invoiced' }
  }
  const { engine } = await startRig(
    db,
    (control) => control[mode]('order', 'paid', handler, { timeout: '200ms', attempts: 1, concurrency: 1 }),
    { log },
  )
  await db.put({ _id: 'a', ...paid, endless: true })
  await eventually(() => expect(engine.health().inFlight).toBe(1))
  await db.put({ _id: 'b', ...paid })
  await eventually(async () => expect(await stateOf(db, 'b')).toBe('invoiced'))
  expect(await stateOf(db, 'a')).toBe('error')
  expect(engine.counts.of(paid).overdue).toBe(1)
  const named = () => lines.filter(({ msg }) => msg.includes('ignores ctx.signal'))
  await eventually(() => expect(named()).toMatchObject([{ doc: 'a', ...paid, overdue: 1 }]))

  go.open()
  await eventually(() => expect(engine.counts.of(paid).overdue).toBe(0))
  expect(late).toMatchObject([{ code: 'timeout' }, { code: 'timeout' }])
  expect(await db.get('a')).toMatchObject({ state: 'error', error: { code: 'timeout' } })
  expect(await db.find('other')).toBeUndefined()
})

test('a handler that saved the next state and then times out leaves the document as saved', async () => {
  const db = await freshDb('time-limit')
  const { engine } = await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (doc, ctx) => {
        await ctx.save({ ...doc, state: 'invoiced' })
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      },
      { timeout: '300ms', ...soon },
    ),
  )
  await db.put({ _id: 'o', ...paid })
  await eventually(() => expect(engine.counts.of(paid).runs.failed).toBe(1))
  await eventually(() => expect(engine.health().inFlight).toBe(0))
  expect(await db.get('o')).toEqual({ _id: 'o', _rev: expect.any(String) as string, type: 'order', state: 'invoiced' })
})

const at = new Date(Date.now() + 3_600_000)
test.each([
  ['a date', at, () => at.getTime()],
  ['a delay', '30m' as const, () => Date.now() + 1_800_000],
])('RetryLater sets the time of the next attempt from %s', async (_, when, expected) => {
  const db = await freshDb('time-limit')
  let tries = 0
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      tries += 1
      if (tries === 1) throw new RetryLater('rate_limited', 'the API wants a pause', when)
      return { ...doc, state: 'invoiced' }
    }),
  )
  await db.put({ _id: 'o', ...paid })
  await eventually(async () => expect(docstateIn(await db.get('o'))).toMatchObject({ attempts: 1 }))
  const { retry_at, failure } = docstateIn(await db.get('o')) as { retry_at: string; failure: object }
  expect(Math.abs(Date.parse(retry_at) - expected())).toBeLessThan(60_000)
  expect(failure).toMatchObject({ code: 'rate_limited', reason: 'the API wants a pause' })
})

test('RetryLater with a short delay overrides the backoff', async () => {
  const db = await freshDb('time-limit')
  let tries = 0
  const backoff = { baseMs: 3_600_000, capMs: 3_600_000 }
  await startRig(db, (control) =>
    control.safe(
      'order',
      'paid',
      async (doc) => {
        tries += 1
        if (tries < 3)
          throw new RetryLater('rate_limited', 'the API wants a pause', tries === 1 ? '100ms' : new Date(0))
        return { ...doc, state: 'invoiced' }
      },
      { backoff },
    ),
  )
  await db.put({ _id: 'o', ...paid })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(tries).toBe(3)
})

test.each([NaN, 'soon', '-5s', new Date(NaN)])('RetryLater refuses an invalid time: %s', (when) => {
  expect(() => new RetryLater('x', 'y', when as Date)).toThrow(
    'RetryLater: expected a time such as 30s, or a Date, got',
  )
})
