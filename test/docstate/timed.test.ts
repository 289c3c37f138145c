/** States that end by themselves, beside handlers that keep, hold or fail in them. */
import { expect, test } from 'vitest'
import { isoTime } from '../../sidecar/core/clock.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silence, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { createLatch, startRig, stateOf } from './rig.ts'

const timeout = { afterMs: 700, next: 'gone' }
const machines = {
  offer: { open: { next: { gone: 'sidecar' }, timeout }, gone: {} },
  question: { asked: { mode: 'safe', next: { answered: 'client', gone: 'sidecar' }, timeout }, answered: {}, gone: {} },
  job: { begun: { mode: 'unsafe', next: { done: 'sidecar', gone: 'sidecar' }, timeout }, done: {}, gone: {} },
} as const

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const sizeOf = (request: SeenRequest) => (JSON.parse(request.body) as { docs: unknown[] }).docs.length

test('a state that its handler keeps ends all the same', async () => {
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

test('a state does not end under the handler of another worker', async () => {
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
  await new Promise((resolve) => setTimeout(resolve, 1500)) // twice the time of the state
  expect(await stateOf(db, 'j')).toBe('begun')
  go.open()
  await eventually(async () => expect(await stateOf(db, 'j')).toBe('done'))
  expect(ran).toHaveLength(1)
})

test('ends of states are written down together, and do not hold up a stop', async () => {
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
  expect(performance.now() - began).toBeLessThan(10_000) // the grace period and two seconds for each last word
})

test('a document that was done with before its state had an end gets one', async () => {
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
