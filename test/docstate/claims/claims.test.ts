/** Claims during races and network faults with exact timing. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createClaims } from '../../../sidecar/docstate/claims/claims.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import { Attempt } from '../../../sidecar/docstate/attempt.ts'
import { withDefaults } from '../../../sidecar/docstate/handler-options.ts'
import type { Claim } from '../../../sidecar/docstate/types.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { silence, startFaultyProxy, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createLatch, docstateIn, startRig, stateOf } from '../rig.ts'
import { accepted } from './accepted.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const isClaim = (request: SeenRequest) => isBulk(request) && request.body.includes('"claim"')
const ids = ['o0', 'o1']

/** Puts two documents. One claim is contested, won and then waits while the handler runs for the other. */
async function untilOneWaits(db: Database, proxy: FaultyProxy): Promise<void> {
  proxy.next(accepted, isClaim)
  await db.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  await eventually(async () => {
    const claims = (await db.getMany(ids)).map((doc) => (docstateIn(doc)?.claim as Claim | undefined)?.begun)
    expect(claims.toSorted()).toEqual([false, true])
    expect(proxy.requests.filter(isClaim).length).toBeGreaterThan(2)
  })
}

async function setUp() {
  const db = await freshDb('claims')
  const proxy = await startFaultyProxy()
  return { db, proxy, through: createTestCouch({ url: proxy.url }).db(db.name) }
}

test('a claim lost while its document waits starts no handler', async () => {
  const { db, proxy, through } = await setUp()
  const go = createLatch()
  const [cutOff, successor]: string[][] = [[], []]
  await startRig(
    through,
    (control) =>
      control.unsafe(
        'order',
        'paid',
        async (doc) => {
          cutOff!.push(doc._id)
          await go.opened
          return { ...doc, state: 'invoiced' }
        },
        { concurrency: 1 },
      ),
    { leaseMs: 3000, worker: 'cut off' },
  )
  await untilOneWaits(db, proxy)
  await eventually(() => expect(cutOff).toHaveLength(1))
  await proxy.down()
  await startRig(
    db,
    (control) =>
      control.unsafe(
        'order',
        'paid',
        async (doc) => {
          successor!.push(doc._id)
          return { ...doc, state: 'invoiced' }
        },
        { onLost: 'retry', backoff: { baseMs: 10, capMs: 10 } },
      ),
    { leaseMs: 3000, worker: 'successor' },
  )
  await eventually(() => expect(successor!.sort()).toEqual(ids))
  go.open()
  await proxy.up()
  await sleep(500)
  expect(cutOff).toHaveLength(1)
})

test('a claim that grows too old while its document waits is released, and the document is not parked', async () => {
  const { db, proxy, through } = await setUp()
  const go = createLatch()
  await startRig(
    through,
    (control) =>
      control.unsafe('order', 'paid', (doc) => go.opened.then(() => ({ ...doc, state: 'invoiced' })), {
        concurrency: 1,
      }),
    { leaseMs: 9000 },
  )
  await untilOneWaits(db, proxy)
  await proxy.down()
  await sleep(6500) // longer than two thirds of the lease without a renewal
  go.open()
  await sleep(200)
  await proxy.up()
  await eventually(async () => {
    const docs = await db.getMany(ids)
    expect(docs.map(({ state }) => state)).toContain('invoiced')
    expect(docs.filter((doc) => doc.state === 'invoiced' || docstateIn(doc)?.parked)).toHaveLength(2)
  })
  expect(docstateIn(await db.get('o1'))?.parked ?? docstateIn(await db.get('o0'))?.parked).toBeUndefined()
})

test('a resent claim counts from its first request, because a copy may hold it since then', async () => {
  const { db, proxy, through } = await setUp()
  let unanswered = 0
  proxy.plan((request) => (isBulk(request) && unanswered++ < 2 ? silence : undefined))
  await startRig(
    through,
    (control) => control.unsafe('order', 'paid', (doc) => Promise.resolve({ ...doc, state: 'invoiced' })),
    { leaseMs: 6000 }, // two requests without an answer, half a lease each, exceed two thirds of the lease
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect((await db.get('o'))._rev).toMatch(/^5-/) // claimed, given back, claimed, saved
})

/** The claims of a worker on a manual clock, and a function that takes one. Each write waits for `answer`. */
function claimsOnManualClock(answer: () => Promise<void>, lease = { ms: 30_000, configuredMs: 30_000 }) {
  const clock = createManualClock()
  const claims = createClaims({
    ...{ worker: 'w', lease, clock },
    contest: () => Promise.reject(new Error('no contest')),
    async writeDoc(attempt, doc) {
      await answer()
      attempt.doc = { ...doc, _rev: '2-b' }
      return { kind: 'stored' }
    },
  })
  const handler = () => Promise.resolve()
  const registration = { type: 't', state: 's', mode: 'unsafe', handler, options: withDefaults({}, 'test') } as const
  const nothing = () => undefined
  async function take(): Promise<Attempt> {
    const attempt = new Attempt(registration, { _id: 'x', _rev: '1-a', type: 't', state: 's' }, 'token')
    await claims.take(attempt, nothing, nothing)
    return attempt
  }
  return { clock, claims, take }
}

/** As `claimsOnManualClock`; after `hang`, no write is answered. */
function claimsThatHang(lease?: { ms: number; configuredMs: number }) {
  let answer = () => Promise.resolve()
  const hang = () => void (answer = () => new Promise(() => {}))
  return { ...claimsOnManualClock(() => answer(), lease), hang }
}

test('a claim is valid for nine tenths of its lease', async () => {
  const stopping = new AbortController()
  const { clock, claims, take, hang } = claimsThatHang()
  const attempt = await take()
  hang()
  const began = clock.ticks()
  void claims.keep(stopping.signal)
  while (!attempt.stopped) await clock.advance(10)
  expect(clock.ticks() - began).toBeGreaterThanOrEqual(27_000)
  expect(clock.ticks() - began).toBeLessThan(27_100)
  stopping.abort(new Error('over'))
})

test('a claim is renewed after a third of its lease', async () => {
  const stopping = new AbortController()
  const written: number[] = []
  const { clock, claims, take } = claimsOnManualClock(() => {
    written.push(clock.ticks())
    return Promise.resolve()
  })
  void claims.keep(stopping.signal)
  await clock.advance(1234) // a claim begins between two checks
  await take()
  await clock.advance(60_000)
  stopping.abort(new Error('over'))
  const waits = written.slice(1).map((at, i) => at - written[i]!)
  expect(waits.length).toBeGreaterThanOrEqual(6)
  for (const wait of waits) {
    expect(wait).toBeGreaterThanOrEqual(9000)
    expect(wait).toBeLessThanOrEqual(10_001)
  }
})

test.each([
  ['shorter', 90_000, 30_000, 27_000],
  ['longer', 30_000, 90_000, 27_000 - 10_000],
])(
  'after a renewal without an answer, the worker relies on the lease that ends first: the new one is %s',
  async (_, firstMs, nextMs, expectedMs) => {
    const stopping = new AbortController()
    const lease = { ms: firstMs, configuredMs: 30_000 }
    const sent: number[] = []
    const { clock, claims, take } = claimsOnManualClock(() => {
      sent.push(clock.ticks())
      return sent.length === 1 ? Promise.resolve() : new Promise(() => {})
    }, lease)
    const attempt = await take()
    lease.ms = nextMs
    void claims.keep(stopping.signal)
    while (!attempt.stopped) await clock.advance(10)
    stopping.abort(new Error('over'))
    expect(sent).toHaveLength(2)
    const keptMs = clock.ticks() - sent[1]!
    expect(keptMs).toBeGreaterThanOrEqual(expectedMs)
    expect(keptMs).toBeLessThan(expectedMs + 1100)
  },
)

test('a short renewal late in a long lease lengthens nothing', async () => {
  const stopping = new AbortController()
  const lease = { ms: 600_000, configuredMs: 30_000 }
  const { clock, claims, take, hang } = claimsThatHang(lease)
  const attempt = await take()
  const wonAt = clock.ticks()
  hang()
  lease.ms = 30_000
  let uploaded = () => {}
  void attempt.mutex(() => new Promise<void>((resolve) => (uploaded = resolve)))
  void claims.keep(stopping.signal)
  await clock.advance(530_000)
  uploaded() // the renewal that waits for it is sent, and not answered
  while (!attempt.stopped) await clock.advance(10)
  stopping.abort(new Error('over'))
  expect(clock.ticks() - wonAt).toBeGreaterThanOrEqual(540_000)
  expect(clock.ticks() - wonAt).toBeLessThan(540_100)
})

test('a stored renewal counts with its own lease', async () => {
  const stopping = new AbortController()
  const lease = { ms: 30_000, configuredMs: 30_000 }
  const { clock, claims, take, hang } = claimsThatHang(lease)
  const attempt = await take()
  lease.ms = 90_000
  void claims.keep(stopping.signal)
  await clock.advance(10_100)
  hang()
  const renewedAt = clock.ticks()
  while (!attempt.stopped) await clock.advance(10)
  stopping.abort(new Error('over'))
  expect(clock.ticks() - renewedAt).toBeGreaterThan(80_000 - 200)
  expect(clock.ticks() - renewedAt).toBeLessThan(81_100)
})

test('claims that are due within a second are renewed together', async () => {
  const stopping = new AbortController()
  const written: number[] = []
  const { clock, claims, take } = claimsOnManualClock(() => {
    written.push(clock.ticks())
    return Promise.resolve()
  })
  void claims.keep(stopping.signal)
  for (let i = 0; i < 5; i++) {
    await take()
    await clock.advance(200)
  }
  written.length = 0
  await clock.advance(9100)
  stopping.abort(new Error('over'))
  expect(written).toHaveLength(5)
  expect(new Set(written).size).toBe(1)
})

test('a request without an answer does not make other claims expire', async () => {
  const { db, proxy, through } = await setUp()
  const go = createLatch()
  let aborted = false
  await startRig(
    through,
    (control) => {
      control.unsafe('order', 'paid', async (doc, ctx) => {
        await go.opened
        aborted = ctx.signal.aborted
        return { ...doc, state: 'invoiced' }
      })
      control.safe('note', 'new', async (doc) => ({ ...doc, state: 'read' }))
    },
    { leaseMs: 10_000 },
  )
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(docstateIn(await db.get('o'))?.claim).toBeDefined())
  proxy.next(silence, isBulk)
  await db.put({ _id: 'n', type: 'note', state: 'new' })
  // Less than the timeout of the request without an answer.
  await eventually(async () => expect(await stateOf(db, 'n')).toBe('read'), { within: 20_000 })
  await sleep(6000)
  go.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(aborted).toBe(false)
})
