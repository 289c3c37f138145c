/** Handler options that delay documents: keys, priorities and rate limits. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { RateLimit, type Rate } from '../../sidecar/core/rate-limit.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { createReserveStarts, limitId } from '../../sidecar/docstate/reserve-starts.ts'
import { createTestCouch, deleteDb, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const paid = { type: 'order', state: 'paid' }
const log = pino({ level: 'silent' })

const isDone = (db: Database, ids: readonly string[]) =>
  eventually(async () => {
    const docs = await db.getMany(ids)
    expect(docs.map(({ state }) => state)).toEqual(ids.map(() => 'invoiced'))
  })

test('a key with many documents delays no other key, and its documents run one at a time', async () => {
  const db = await freshDb('limits')
  const go = createLatch()
  let running = 0
  let most = 0
  const { engine } = await startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      async (order: { customer: string }) => {
        if (order.customer === 'hot') {
          most = Math.max(most, ++running)
          await go.opened
          running -= 1
        }
        return { ...order, state: 'invoiced' }
      },
      { key: (order) => order.customer },
    ),
  )
  const hot = Array.from({ length: 100 }, (_, n) => ({ _id: `h${n}`, ...paid, customer: 'hot' }))
  await db.bulk(hot.map((doc) => JSON.stringify(doc)))
  const cold = Array.from({ length: 40 }, (_, n) => ({ _id: `c${n}`, ...paid, customer: `c${n}` }))
  await db.bulk(cold.map((doc) => JSON.stringify(doc)))
  await isDone(
    db,
    cold.map(({ _id }) => _id),
  )
  expect(engine.health().inFlight, 'of the other documents, only ids wait in memory').toBeLessThan(10)
  go.open()
  await isDone(
    db,
    hot.map(({ _id }) => _id),
  )
  expect(most).toBe(1)
})

test('while documents of a higher priority wait, other handlers run one document at a time', async () => {
  const db = await freshDb('priority')
  const [later, urgent] = [createGate(), createGate()]
  await startRig(db, (control) => {
    control.safe('order', 'paid', (order) => later.run(order), { priority: 6 })
    control.unsafe('alarm', 'new', (alarm) => urgent.run(alarm), { priority: 0 })
  })
  const orders = Array.from({ length: 60 }, (_, n) => JSON.stringify({ _id: `o${n}`, ...paid }))
  await db.bulk(orders)
  await eventually(() => expect(later.waiting.length).toBe(32))
  const alarms = Array.from({ length: 40 }, (_, n) => JSON.stringify({ _id: `a${n}`, type: 'alarm', state: 'new' }))
  await db.bulk(alarms)
  await eventually(() => expect(urgent.waiting.length).toBe(32))
  for (const go of later.waiting.splice(0)) go()
  await eventually(() => expect(later.waiting.length).toBe(1))
  later.waiting.splice(0)[0]!()
  await eventually(() => expect(later.waiting.length).toBe(1))
  expect(urgent.waiting.length).toBe(32)
  for (const go of urgent.waiting.splice(0)) go()
  await eventually(() => expect(urgent.waiting.length).toBe(8))
  await eventually(() => expect(later.waiting.length, 'orders run again while the last alarms run').toBe(27))
  for (const gate of [urgent, later]) {
    gate.isOpen = true
    for (const go of gate.waiting.splice(0)) go()
  }
  await eventually(async () => expect(await stateOf(db, 'o59')).toBe('done'))
})

/** Creates a handler whose runs wait until the test ends them. */
function createGate() {
  const gate = {
    isOpen: false,
    waiting: [] as (() => void)[],
    async run<D extends object>(doc: D) {
      if (!gate.isOpen) await new Promise<void>((resolve) => gate.waiting.push(resolve))
      return { ...doc, state: 'done' }
    },
  }
  return gate
}

test('a document whose key throws goes to error, and the next document is handled', async () => {
  const db = await freshDb('limits')
  await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }), {
      key: (order) => (order.customer as { id: string }).id,
    }),
  )
  await db.put({ _id: 'bad', ...paid })
  await db.put({ _id: 'good', ...paid, customer: { id: 'ann' } })
  await eventually(async () => expect(await stateOf(db, 'good')).toBe('invoiced'))
  await eventually(async () => expect(await stateOf(db, 'bad')).toBe('error'))
  expect((await db.get('bad')).error).toMatchObject({ code: 'bad_key' })
})

test('a document that waits for the rate limit has no claim and no counted attempt', async () => {
  const db = await freshDb('limits')
  const rig = await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }), {
      limit: { count: 1, per: '1h' },
    }),
  )
  for (const _id of ['a', 'b']) await db.put({ _id, ...paid })
  await eventually(async () => {
    const states = await Promise.all(['a', 'b'].map((id) => stateOf(db, id)))
    expect(states.toSorted()).toEqual(['invoiced', 'paid'])
  })
  const [waiting] = (await db.getMany(['a', 'b'])).filter(({ state }) => state === 'paid')
  expect(docstateIn(waiting)).toBeUndefined()
  await rig.stop()
  expect(await stateOf(db, waiting!._id)).toBe('paid')
  expect(await db.get(limitId('order/paid'))).toMatchObject({ type: 'limit', next_at: expect.any(String) as string })
})

/** Creates a worker that starts as often as the limit allows. */
function startBeginning(control: Database, rate: Rate, clock = systemClock) {
  const stop = new AbortController()
  const reserve = createReserveStarts({ control, name: 'order/paid', rate, clock, random: Math.random, log })
  const limit = new RateLimit(reserve, clock, stop.signal)
  const begun: number[] = []
  const begin = async () => {
    await limit.enter(stop.signal)
    begun.push(clock.now())
  }
  return { begun, begin, stop: () => stop.abort(new Error('the test is over')) }
}

test('three workers reserve evenly spaced start times, and no time twice', async () => {
  const db = await freshDb('limits')
  const rate = { count: 10, perMs: 500 }
  const { signal } = new AbortController()
  const takeTwenty = async () => {
    const options = { control: db, name: 'order/paid', rate, clock: systemClock, random: Math.random, log }
    const reserve = createReserveStarts(options)
    const times: number[] = []
    while (times.length < 20) {
      const { first, apartMs, count } = await reserve(20 - times.length, signal)
      times.push(...Array.from({ length: count }, (_, n) => Math.ceil(first + n * apartMs)))
    }
    return times
  }
  const all = (await Promise.all([takeTwenty(), takeTwenty(), takeTwenty()])).flat().sort((a, b) => a - b)
  const apart = all.slice(1).map((at, n) => at - all[n]!)
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(50)
  expect(all.at(-1)! - all[0]!, 'few start times are lost').toBeLessThan(60 * 50 * 1.5)
})

test('waiting runs start at their reserved times, in the order of arrival', async () => {
  const clock = createManualClock(0)
  const { signal } = new AbortController()
  const limit = new RateLimit(() => Promise.resolve({ first: 100, apartMs: 150, count: 2 }), clock, signal)
  const begun: [string, number][] = []
  for (const name of ['a', 'b']) void limit.enter(signal).then(() => begun.push([name, clock.now()]))
  await clock.advance(99)
  expect(begun).toEqual([])
  await clock.advance(151)
  expect(begun).toEqual([
    ['a', 100],
    ['b', 250],
  ])
})

test('at a high rate, a worker reserves more starts than waiting runs, and later runs use them', async () => {
  const clock = createManualClock(0)
  const { signal } = new AbortController()
  const requested: number[] = []
  const reserve = async (most: number) => {
    requested.push(most)
    const first = clock.now()
    await clock.sleep(10, signal)
    return { first, apartMs: 0.1, count: most }
  }
  const limit = new RateLimit(reserve, clock, signal)
  let begun = 0
  for (let round = 0; round < 20; round++) {
    for (let n = 0; n < 30; n++) void limit.enter(signal).then(() => (begun += 1))
    await clock.advance(10)
    await clock.advance(1)
  }
  expect(begun).toBeGreaterThan(500)
  expect(requested[0]).toBe(1)
  expect(Math.max(...requested)).toBe(1000) // the starts of 100 ms, which is ten times the duration of a request
  expect(requested.length).toBeLessThan(8)
})

test.each([
  ['a time far in the future from a wrong clock', () => new Date(Date.UTC(2030, 0, 2)).toISOString()],
  ['a word', () => 'soon'],
  ['no value', () => undefined],
])('an invalid next start in the limit document is replaced: %s', async (_, next_at) => {
  const db = await freshDb('limits')
  await db.put({ _id: limitId('order/paid'), type: 'limit', next_at: next_at() })
  const worker = startBeginning(db, { count: 1, perMs: 1000 }, createManualClock(Date.UTC(2030, 0, 1)))
  await worker.begin()
  expect(worker.begun).toEqual([Date.UTC(2030, 0, 1)])
})

test('no run starts while the limit document cannot be written, and runs start afterwards', async () => {
  const db = await freshDb('limits')
  const proxy = await startFaultyProxy()
  proxy.plan(({ method }) => (method === 'PUT' ? refuse(503) : undefined))
  const worker = startBeginning(createTestCouch({ url: proxy.url }).db(db.name), { count: 100, perMs: 1000 })
  const begin = worker.begin()
  await eventually(() => expect(proxy.requests.filter(({ method }) => method === 'PUT').length).toBeGreaterThan(1))
  expect(worker.begun).toEqual([])
  proxy.plan(() => undefined)
  await begin
  expect(worker.begun).toHaveLength(1)
})

test('a run that waits for the limit of a deleted database ends with its signal', async () => {
  const db = await freshDb('limits')
  await deleteDb(db.name)
  const worker = startBeginning(db, { count: 1, perMs: 1000 })
  const begin = worker.begin()
  worker.stop()
  await expect(begin).rejects.toThrow('the test is over')
})
