import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  answerWith,
  cut,
  cutAfterUpstream,
  delay,
  refuse,
  startFaultyProxy,
  type Fault,
  type SeenRequest,
} from '../support/faulty-proxy.ts'
import { amount } from '../support/thorough.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const isFeed = (request: SeenRequest) => request.path.endsWith('/_changes')
const isContinuous = (request: SeenRequest) => isFeed(request) && request.query.get('feed') === 'continuous'
const isWrite = ({ method, path }: SeenRequest) =>
  method === 'PUT' || method === 'DELETE' || (method === 'POST' && !/_all_docs|_view/.test(path))

async function setUp() {
  const db = await freshDb('network')
  const proxy = await startFaultyProxy()
  return { db, proxy, through: createTestCouch({ url: proxy.url }).db(db.name) }
}

const invoice = (ran: string[]) => (control: Control) =>
  control.unsafe('order', 'paid', async (doc) => {
    ran.push(doc._id)
    return { ...doc, state: 'invoiced' }
  })

const faults: [string, Fault][] = [
  ['is refused with 500', refuse(500)],
  ['is refused with 401', refuse(401)],
  ['does not arrive', cut],
  ['arrives without an answer', cutAfterUpstream],
  ['arrives late', delay(200)],
]
for (const [what, fault] of faults) {
  for (const [step, number] of [
    ['claim', 0],
    ['save', 1],
  ] as const) {
    test(`a ${step} that ${what} is neither lost nor repeated`, async () => {
      const { db, proxy, through } = await setUp()
      const ran: string[] = []
      await startRig(through, invoice(ran))
      let bulks = 0
      proxy.plan((request) => (isBulk(request) && bulks++ === number ? fault : undefined))
      await db.put({ _id: 'o', type: 'order', state: 'paid' })
      await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
      expect(ran).toEqual(['o'])
      expect(await db.get('o')).not.toHaveProperty('docstate')
    })
  }
}

test.each([
  ['404 with an HTML page of a proxy', answerWith(404, '<html>404 Not Found</html>', 'text/html')],
  ['404 without a body', answerWith(404, 'null')],
  ["404 with CouchDB's error", answerWith(404, '{"error":"not_found","reason":"missing"}')],
  ['200 without leaves', answerWith(200, '[]')],
])('a lost save does not count as stored when a read finds no document: %s', async (_, fault) => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  let bulks = 0
  let reads = 0
  const isRead = ({ method, path }: SeenRequest) => method === 'GET' && path.endsWith('/o')
  proxy.plan((request) => {
    if (isBulk(request)) return bulks++ === 1 ? cut : undefined
    return isRead(request) && bulks === 2 && reads++ === 0 ? fault : undefined
  })
  await startRig(through, invoice(ran))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(reads).toBeGreaterThan(0)
  expect(ran).toEqual(['o'])
})

const COUNT = amount(40, 100)

test('every document is handled once when a third of the requests fails', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  await startRig(through, invoice(ran))
  let requested = 0
  proxy.plan((request) =>
    isFeed(request) || requested++ % 3 !== 0 ? undefined : [cut, cutAfterUpstream, refuse(503)][requested % 3],
  )
  for (let i = 0; i < COUNT; i++) await db.put({ _id: `o${i}`, type: 'order', state: 'paid' })
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 3 })
    expect(rows).toEqual([{ key: ['order', 'invoiced', 'ready'], value: COUNT }])
  })
  expect(ran.sort()).toEqual([...new Set(ran)])
  expect(ran).toHaveLength(COUNT)
})

test('the resync finds documents that the feed does not report', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  proxy.plan((request) => (isContinuous(request) ? silentFeed : undefined))
  await startRig(through, invoice(ran), { resyncMs: 300 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await db.put({ _id: 'p', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'p')).toBe('invoiced'))
})

test('the continuous feed includes documents, also when the last changes were the sidecar’s own writes', async () => {
  const { db, proxy, through } = await setUp()
  await startRig(through, invoice([]))
  await eventually(() => expect(proxy.requests.filter(isContinuous)).toHaveLength(1))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await proxy.down()
  await proxy.up()
  await eventually(() => expect(proxy.requests.filter(isContinuous).length).toBeGreaterThan(1))
  for (const { query } of proxy.requests.filter(isContinuous)) expect(query.get('include_docs')).toBe('true')
})

/** A feed that sends heartbeats and no changes. */
const silentFeed: Fault = async (exchange) => {
  const beats = async function* () {
    for (let began = 0, gone = false; !gone; gone = performance.now() - began < 50) {
      yield Buffer.from('\n')
      began = performance.now()
      await exchange.wait(100) // returns early when the client disconnects
    }
  }
  await exchange.send({ status: 200, headers: { 'content-type': 'application/json' }, body: beats() })
}

test('an idle sidecar writes nothing, and its own writes cause no further writes', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  await startRig(through, invoice(ran), { resyncMs: 200 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  const place = (request: SeenRequest) => request.path.includes('/_local/') && request.method === 'PUT'
  await eventually(() => expect(proxy.requests.filter(place)).toHaveLength(1))
  const { update_seq } = await db.info()
  const seen = proxy.requests.length
  const sweeps = () => proxy.requests.slice(seen).filter(({ path }) => path.includes('/_view/')).length
  await eventually(() => expect(sweeps()).toBeGreaterThan(10))
  expect(proxy.requests.slice(seen).filter(isWrite)).toEqual([])
  expect((await db.info()).update_seq).toEqual(update_seq)
})

test('writes travel in groups', async () => {
  const { db, proxy, through } = await setUp()
  const docs = Array.from({ length: 500 }, (_, i) => JSON.stringify({ _id: `o${i}`, type: 'order', state: 'paid' }))
  await db.bulk(docs)
  await startRig(through, invoice([]))
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
    expect(rows).toEqual([{ key: ['order', 'invoiced'], value: 500 }])
  })
  expect(proxy.requests.filter(isBulk).length).toBeLessThan(100)
})

test('a slow handler slows the feed, because a byte budget bounds the documents in flight', async () => {
  const db = await freshDb('network')
  const padding = 'x'.repeat(10_000)
  const docs = Array.from({ length: 600 }, (_, i) =>
    JSON.stringify({ _id: `o${i}`, type: 'order', state: 'paid', padding }),
  )
  await db.bulk(docs)
  const go = createLatch()
  const { engine } = await startRig(
    db,
    (control) => control.safe('order', 'paid', (doc) => go.opened.then(() => ({ ...doc, state: 'invoiced' }))),
    { byteBudget: createByteBudget(1_000_000) }, // one handler may use half of it
  )
  await eventually(() => expect(engine.health().inFlight).toBeGreaterThan(30))
  await expect(
    eventually(() => expect(engine.health().inFlight).toBeGreaterThan(45), { within: 700 }),
  ).rejects.toThrow()
  go.open()
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
    expect(rows).toEqual([{ key: ['order', 'invoiced'], value: 600 }])
  })
})

test('a disconnected worker cannot save a result after another worker took over', async () => {
  const { db, proxy, through } = await setUp()
  const [began, go] = [createLatch(), createLatch()]
  let aborted = false
  await startRig(
    through,
    (control) =>
      control.unsafe('order', 'paid', async (doc, ctx) => {
        ctx.signal.addEventListener('abort', () => (aborted = true))
        began.open()
        await go.opened
        return { ...doc, state: 'invoiced', by: 'the one that was cut off' }
      }),
    { leaseMs: 1000, worker: 'cut off' },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await began.opened
  await proxy.down()
  await startRig(
    db,
    (control) =>
      control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced', by: 'the successor' }), {
        onLost: 'retry',
      }),
    { leaseMs: 1000, worker: 'successor' },
  )
  await eventually(() => expect(aborted).toBe(true))
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', by: 'the successor' }))
  go.open()
  await proxy.up()
  await expect(
    eventually(async () => expect((await db.get('o')).by).not.toBe('the successor'), { within: 1500 }),
  ).rejects.toThrow()
  expect(docstateIn(await db.get('o'))).toBeUndefined()
})
