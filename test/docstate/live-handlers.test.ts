/** Handler settings that change at run time: pause, concurrency and rate limit. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import type { HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Control, HandlerOptions } from '../../sidecar/index.ts'
import { ownLimits } from '../../sidecar/docstate/handler-limits.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { docstateIn, startRig, stateOf } from './rig.ts'

const paid = { type: 'order', state: 'paid' }
const PAUSED: HandlerSettings = { 'order/paid': { paused: true } }
const WHILE_MS = 1500

async function startLive(
  db: Database,
  register: (control: Control) => void,
  { settings = {}, ...options }: { settings?: HandlerSettings; resyncMs?: number; machines?: Machines } = {},
) {
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  const log = pino({ level: 'silent' })
  const limits = ownLimits({ control: db, clock: systemClock, random: Math.random, log, signal: stopping.signal })
  limits.set(settings)
  const rig = await startRig(db, register, { ...options, limits })
  return { ...rig, set: (next: HandlerSettings) => limits.set(next) }
}

/** Registers a handler for `order/paid` whose runs wait until the test ends them. */
function createRuns(mode: 'safe' | 'unsafe' = 'unsafe', options: HandlerOptions = {}) {
  const waiting = new Map<string, () => void>()
  let begun = 0
  const register = (control: Control) =>
    control[mode](
      'order',
      'paid',
      async (order) => {
        begun += 1
        await new Promise<void>((resolve) => waiting.set(order._id, resolve))
        return { ...order, state: 'done' }
      },
      options,
    )
  return {
    register,
    begun: () => begun,
    running: () => waiting.size,
    letGo(count = Infinity) {
      for (const [id, go] of [...waiting].slice(0, count)) {
        waiting.delete(id)
        go()
      }
    },
  }
}

const putOrders = (db: Database, from: number, to: number) =>
  db.bulk(Array.from({ length: to - from }, (_, n) => JSON.stringify({ _id: `o${from + n}`, ...paid })))

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const areDone = (db: Database, count: number) =>
  eventually(async () => {
    const docs = await db.getMany(Array.from({ length: count }, (_, n) => `o${n}`))
    expect(docs.filter(({ state }) => state === 'done')).toHaveLength(count)
  })

test.each(['safe', 'unsafe'] as const)(
  'a paused %s handler finishes its running documents and starts none',
  async (mode) => {
    const db = await freshDb('live')
    const runs = createRuns(mode, { concurrency: 2 })
    const { set } = await startLive(db, runs.register)
    await putOrders(db, 0, 8)
    await eventually(() => expect(runs.running()).toBe(2))
    set(PAUSED)
    await putOrders(db, 8, 10)
    runs.letGo()
    await eventually(async () => {
      const docs = await db.getMany(Array.from({ length: 10 }, (_, n) => `o${n}`))
      expect(docs.filter(({ state }) => state === 'done')).toHaveLength(2)
      expect(
        docs.filter((doc) => docstateIn(doc)?.claim),
        'claims without a running handler are released',
      ).toEqual([])
    })
    await pass(WHILE_MS)
    expect(runs.begun()).toBe(2)
    set({})
    for (let done = 2; done < 10; done += 2) {
      await eventually(() => expect(runs.running()).toBe(2))
      runs.letGo()
    }
    await areDone(db, 10)
    expect(runs.begun()).toBe(10)
  },
)

test('documents from before the start, due retries and resynced documents wait for the end of a pause', async () => {
  const db = await freshDb('live')
  await putOrders(db, 0, 3)
  const due = { state: 'paid', attempts: 1, entry: '1-x', retry_at: new Date(Date.now() + 500).toISOString() }
  await db.put({ _id: 'o3', ...paid, docstate: due })
  const runs = createRuns()
  const { set } = await startLive(db, runs.register, { settings: PAUSED, resyncMs: 400 })
  await pass(WHILE_MS)
  expect(runs.begun()).toBe(0)
  set({ 'order/paid': { concurrency: 3 }, 'order/new': { paused: true } })
  await eventually(() => expect(runs.running()).toBe(3))
  runs.letGo()
  await eventually(() => expect(runs.running()).toBe(1))
  runs.letGo()
  await areDone(db, 4)
})

test('a state times out while its handler is paused', async () => {
  const db = await freshDb('live')
  const machines = {
    order: {
      paid: { mode: 'unsafe', next: { done: 'sidecar', late: 'sidecar' }, timeout: { afterMs: 1000, next: 'late' } },
      done: {},
      late: {},
    },
  } as const
  const runs = createRuns()
  await startLive(db, runs.register, { settings: PAUSED, machines })
  await putOrders(db, 0, 1)
  await eventually(async () => expect(await stateOf(db, 'o0')).toBe('late'))
  expect(runs.begun()).toBe(0)
})

test('a change of concurrency takes effect at once, in both directions', async () => {
  const db = await freshDb('live')
  const runs = createRuns('unsafe', { concurrency: 2 })
  const { set } = await startLive(db, runs.register)
  await putOrders(db, 0, 20)
  await eventually(() => expect(runs.running()).toBe(2))
  set({ 'order/paid': { concurrency: 6 } })
  await eventually(() => expect(runs.running()).toBe(6))
  set({ 'order/paid': { concurrency: 1 } })
  runs.letGo()
  await eventually(() => expect(runs.running()).toBe(1))
  await pass(500)
  expect(runs.running()).toBe(1)
  set({})
  await eventually(() => expect(runs.running()).toBe(2))
})

test('a raised rate limit takes effect at once, also for waiting documents', async () => {
  const db = await freshDb('live')
  const runs = createRuns('safe', { limit: { count: 1, per: '1h' } })
  const { set } = await startLive(db, runs.register)
  await putOrders(db, 0, 5)
  await eventually(() => expect(runs.begun()).toBe(1))
  await pass(500)
  expect(runs.begun()).toBe(1)
  set({ 'order/paid': { limit: { count: 100, per: '1s' } } })
  await eventually(() => expect(runs.begun()).toBe(5))
  set({ 'order/paid': { limit: { count: 1, per: '1h' } } })
  await putOrders(db, 5, 8)
  await eventually(() => expect(runs.begun()).toBeGreaterThanOrEqual(5))
  await pass(500)
  expect(runs.begun()).toBeLessThan(8)
  set(PAUSED)
  set({ 'order/paid': { limit: { count: 100, per: '1s' } } })
  await eventually(() => expect(runs.begun()).toBe(8))
})
