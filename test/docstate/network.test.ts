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
  ['arrives, but its answer does not', cutAfterUpstream],
  ['comes late', delay(200)],
]
for (const [what, fault] of faults) {
  for (const [step, number] of [
    ['claim', 0],
    ['save', 1],
  ] as const) {
    test(`a ${step} that ${what} is neither lost nor made twice`, async () => {
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
  ['a page of a proxy', answerWith(404, '<html>404 Not Found</html>', 'text/html')],
  ['no body', answerWith(404, 'null')],
  ['the words of CouchDB', answerWith(404, '{"error":"not_found","reason":"missing"}')],
  ['no leaves', answerWith(200, '[]')],
])(
  'a save that did not arrive is not taken for stored where it is said that the document is not there: %s',
  async (_, fault) => {
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
  },
)

const COUNT = amount(40, 100)

test('documents come through a server of which a third of the answers is lost', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  await startRig(through, invoice(ran))
  let asked = 0
  proxy.plan((request) =>
    isFeed(request) || asked++ % 3 !== 0 ? undefined : [cut, cutAfterUpstream, refuse(503)][asked % 3],
  )
  for (let i = 0; i < COUNT; i++) await db.put({ _id: `o${i}`, type: 'order', state: 'paid' })
  await eventually(
    async () => {
      const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 3 })
      expect(rows).toEqual([{ key: ['order', 'invoiced', 'ready'], value: COUNT }])
    },
    { within: 25_000 },
  )
  expect(ran.sort()).toEqual([...new Set(ran)])
  expect(ran).toHaveLength(COUNT)
})

test('what the feed does not tell is found by looking', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  proxy.plan((request) => (isContinuous(request) ? silentFeed : undefined))
  await startRig(through, invoice(ran), { resyncMs: 300 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await db.put({ _id: 'p', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'p')).toBe('invoiced'))
})

test('a connection that stays open carries documents, also where the last rows were of own writes', async () => {
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

/** A feed that lives and never tells anything. */
const silentFeed: Fault = async (exchange) => {
  const beats = async function* () {
    for (let began = 0, gone = false; !gone; gone = performance.now() - began < 50) {
      yield Buffer.from('\n')
      began = performance.now()
      await exchange.wait(100) // shorter when the client has gone
    }
  }
  await exchange.send({ status: 200, headers: { 'content-type': 'application/json' }, body: beats() })
}

test('an idle sidecar writes nothing, and its own writes wake nothing', async () => {
  const { db, proxy, through } = await setUp()
  const ran: string[] = []
  await startRig(through, invoice(ran), { resyncMs: 200 })
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  const place = (request: SeenRequest) => request.path.includes('/_local/') && request.method === 'PUT'
  await eventually(() => expect(proxy.requests.filter(place)).toHaveLength(1), { within: 12_000 })
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

test('a slow handler slows the reading: documents in flight are bounded by their bytes', async () => {
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
    { byteBudget: createByteBudget(1_000_000) }, // half of it for one handler,
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

test('a handler in one try does not see another worker take over: what it saves late is not saved', async () => {
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
