/** States with a timeout, and handlers that keep or hold a document in them. */
import { expect, test } from 'vitest'
import { isoTime } from '../../sidecar/core/clock.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import type { Partition } from '../../sidecar/workers/partitioning.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silence, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { createSkippingClock } from '../support/skipping-clock.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const timeout = { afterMs: 700, next: 'gone' }
const machines = {
  offer: { open: { timeout }, gone: {} },
  question: { asked: { mode: 'safe', next: { answered: 'client' }, timeout }, answered: {}, gone: {} },
  job: { begun: { mode: 'unsafe', next: { done: 'sidecar' }, timeout }, done: {}, gone: {} },
} as const

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const sizeOf = (request: SeenRequest) => (JSON.parse(request.body) as { docs: unknown[] }).docs.length

test('a state times out after its handler returned nothing', async () => {
  const db = await freshDb('timed')
  let runs = 0
  await startRig(
    db,
    (control) =>
      control.safe('question', 'asked', async () => {
        runs += 1
      }),
    { machines, resyncMs: 300 },
  )
  await db.put({ _id: 'q', type: 'question', state: 'asked' })
  await eventually(async () => expect(await stateOf(db, 'q')).toBe('gone'))
  expect(runs).toBe(1)
})

test('a state does not time out while the handler of another worker runs', async () => {
  const db = await freshDb('timed')
  const go = createLatch()
  const ran: string[] = []
  for (const worker of ['one', 'two']) {
    await startRig(
      db,
      (control) =>
        control.unsafe('job', 'begun', async (doc) => {
          ran.push(worker)
          await go.opened
          return { ...doc, state: 'done' }
        }),
      { machines, worker, resyncMs: 200 },
    )
  }
  await db.put({ _id: 'j', type: 'job', state: 'begun' })
  await eventually(() => expect(ran).toHaveLength(1))
  await new Promise((resolve) => setTimeout(resolve, 1500)) // twice the timeout of the state
  expect(await stateOf(db, 'j')).toBe('begun')
  go.open()
  await eventually(async () => expect(await stateOf(db, 'j')).toBe('done'))
  expect(ran).toHaveLength(1)
})

test('timeouts of states are written in groups and do not delay a stop', async () => {
  const db = await freshDb('timed')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const ids = Array.from({ length: 50 }, (_, i) => `x${i}`)
  await db.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'offer', state: 'open' })))
  const rig = await startRig(through, () => undefined, { machines, graceMs: 200 })
  await eventually(async () => {
    for (const doc of await db.getMany(ids)) expect(doc.state).toBe('gone')
  })
  expect(Math.max(...proxy.requests.filter(isBulk).map(sizeOf))).toBeGreaterThan(10)
  proxy.plan((request) => (isBulk(request) ? silence : undefined))
  const before = proxy.requests.filter(isBulk).length
  await db.put({ _id: 'y', type: 'offer', state: 'open' })
  await eventually(() => expect(proxy.requests.filter(isBulk).length).toBeGreaterThan(before))
  const began = performance.now()
  await rig.stop()
  expect(performance.now() - began).toBeLessThan(10_000) // the grace period and two seconds for each last write
})

test('a handled document times out after its state gets a timeout', async () => {
  const db = await freshDb('timed')
  await db.put({
    _id: 'q',
    type: 'question',
    state: 'asked',
    docstate: { state: 'asked', handled: isoTime(Date.now()) },
  })
  await startRig(db, (control) => control.safe('question', 'asked', async () => {}), { machines, resyncMs: 300 })
  await eventually(async () => expect(await stateOf(db, 'q')).toBe('gone'))
})

const lesson = {
  planned: {
    create: 'client',
    next: { planned: 'client', begun: 'sidecar' },
    timeout: { at: 'begins_at', next: 'begun' },
  },
  begun: {},
  error: {},
} as const

test('a state times out at the time in its document, also after a change or in the past', async () => {
  const db = await freshDb('timed')
  const clock = createSkippingClock()
  const [soon, later] = [600_000, 86_400_000].map((ms) => isoTime(clock.now() + ms))
  const planned = (_id: string, begins_at: unknown) => db.put({ _id, type: 'lesson', state: 'planned', begins_at })
  await planned('past', '2020-02-29T12:00:00+01:00')
  await planned('soon', soon)
  await planned('later', later)
  await planned('earlier', later)
  await planned('put off', soon)
  const { engine } = await startRig(db, () => undefined, { machines: { lesson }, resyncMs: 300, clock })
  const isBegun = async (id: string) => expect(await stateOf(db, id)).toBe('begun')
  const isRecorded = async (id: string) => expect(docstateIn(await db.get(id))).toHaveProperty('timeout_at')
  await eventually(() => isBegun('past'))
  for (const id of ['soon', 'later', 'earlier', 'put off']) await eventually(() => isRecorded(id))
  await db.put({ ...(await db.get('earlier')), begins_at: soon })
  await db.put({ ...(await db.get('put off')), begins_at: later })
  expect(await stateOf(db, 'soon')).toBe('planned')
  expect(await stateOf(db, 'earlier')).toBe('planned')
  clock.skip(601_000)
  await eventually(() => isBegun('earlier'))
  await eventually(() => isBegun('soon'))
  await eventually(() => expect(engine.rest()).toBeDefined())
  expect(await stateOf(db, 'put off')).toBe('planned')
  expect(await stateOf(db, 'later')).toBe('planned')
})

test.each([undefined, null, 'tomorrow', '2026-13-01T00:00:00Z', '2026-11-26T12:00:00', 1795727882309, {}])(
  'a document with an invalid timeout goes to error with the reason: %j',
  async (begins_at) => {
    const db = await freshDb('timed')
    await db.put({ _id: 'l', type: 'lesson', state: 'planned', begins_at })
    await startRig(db, () => undefined, { machines: { lesson } })
    await eventually(async () => expect(await stateOf(db, 'l')).toBe('error'))
    expect((await db.get('l')).error).toMatchObject({
      code: 'bad_time',
      reason: expect.stringMatching(/^begins_at: expected a time such as 2026-11-26T12:00:00Z, got /) as string,
    })
  },
)

test('a document with a recorded timeout is handled after another worker left before its handler', async () => {
  const db = await freshDb('timed')
  const [later, listeners] = [isoTime(Date.now() + 3_600_000), new Set<() => void>()]
  let isOurs = false
  const partition: Partition = {
    isOurs: () => isOurs,
    isOursAnywhere: () => isOurs,
    hasEquals: () => true,
    onChange: (listener) => void listeners.add(listener),
  }
  const long = {
    job: { ...machines.job, begun: { ...machines.job.begun, timeout: { ...timeout, afterMs: 3_600_000 } } },
  }
  const register = (control: Control) =>
    control.unsafe('job', 'begun', (doc) => Promise.resolve({ ...doc, state: 'done' }))
  const { engine } = await startRig(db, register, { machines: long, partition })
  await db.put({ _id: 'j', type: 'job', state: 'begun', docstate: { state: 'begun', timeout_at: later } })
  await eventually(() => expect(engine.lag()).toMatchObject({ unread: 0, unsettled: 0, behindMs: 0 }))
  expect(await stateOf(db, 'j')).toBe('begun')
  isOurs = true
  for (const changed of listeners) changed()
  await eventually(async () => expect(await stateOf(db, 'j')).toBe('done'))
})
