import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { isoTime } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { seqFrom } from '../../sidecar/couch/documents.ts'
import { changesAt } from '../../sidecar/couch/shard-seqs.ts'
import { ownerOf } from '../../sidecar/databases/jobs.ts'
import { createShiftedClock } from '../../sidecar/testing/shifted-clock.ts'
import { createTestCouch, deleteDb, nextSecond } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { isInfo, ofThreeCopies } from '../support/faults.ts'
import { answerWith, pass, refuse, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { thoroughTest } from '../support/thorough.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig } from './rig.ts'

const SOON = [300, 300] as const
/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

/** Waits until these databases are idle. Returns the number of visits, including those of the first listing. */
async function untilRest(rig: Rig, { databases = 1, visitsBefore = 0 } = {}): Promise<number> {
  await eventually(() => {
    expect(rig.visited()).toMatchObject({ databases, open: 0, waiting: 0 })
    expect(rig.visited().visits).toBeGreaterThan(visitsBefore)
  })
  return rig.visited().visits
}

/** The fields of a document after a failed attempt. */
const dueIn = (seconds: number) => ({
  docstate: { state: 'paid', attempts: 1, retry_at: isoTime(Date.now() + seconds * 1000) },
})

const checkpointOf = ({ table }: Rig, database: Database) => database.find(`_local/couchdb-sidecar:${ownerOf(table)}`)

/**
 * True if the checkpoint is up to date and shows that the visit left no work. A lagging copy of a cluster, or a visit
 * that the stop has interrupted, makes one more visit necessary.
 */
async function isUpToDate(rig: Rig, database: Database): Promise<boolean> {
  const [checkpoint, info] = [await checkpointOf(rig, database), await database.info()]
  return (
    checkpoint?.next_at !== undefined && changesAt(seqFrom(checkpoint.seq as string)) === changesAt(info.update_seq)
  )
}

const isOf = (name: string) => (request: SeenRequest) => request.path.startsWith(`/${name}/`)
const texts = (requests: readonly SeenRequest[]) =>
  requests.map(({ method, path }) => `${method} ${path.split('?')[0]}`)

test('a document named by an event is handled, and no visit stays open', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const name = `${prefix}-db-a`
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY })
  const [a] = await make(rig, name)
  rig.report(name, 'created')
  await untilRest(rig)
  await a!.put(order('one'))
  const before = proxy.requests.filter(isOf(name)).length
  rig.report(name)
  await eventually(async () => expect(await stateOf(a!, 'one')).toBe('invoiced'))
  const visitsBefore = await untilRest(rig)
  const requested = texts(proxy.requests.filter(isOf(name)).slice(before))
  expect(requested.filter((text) => text.includes('_changes')).length).toBeLessThanOrEqual(2)
  expect(requested.filter((text) => text.startsWith('PUT'))).toHaveLength(1) // the checkpoint
  const after = proxy.requests.filter(isOf(name)).length
  rig.report(name) // the event of the sidecar's own write
  await untilRest(rig, { visitsBefore })
  expect(texts(proxy.requests.filter(isOf(name)).slice(after))).toEqual([`GET /${name}/_changes`])
})

test('a visit sends no request between the claim of a document and its handler', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const name = `${prefix}-db-a`
  const before: string[] = []
  const ofDatabase = () => proxy.requests.filter(({ path }) => path === `/${name}` || path.startsWith(`/${name}/`))
  const rig = startVisits(prefix, {
    ...{ by: proxy.url, lookAgainMs: SOON },
    register: (control) =>
      control.unsafe('order', 'paid', (doc) => {
        before.push(...texts(ofDatabase()))
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
  })
  const [a] = await make(rig, name)
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0 }))
  await a!.put(order('one'))
  await eventually(async () => expect(await stateOf(a!, 'one')).toBe('invoiced'))
  expect(before.filter((text) => !text.includes('_changes')).at(-1)).toBe(`POST /${name}/_bulk_docs`)
})

test('on a cluster, a visit that finds nothing reads once more, because the copy may lag', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const name = `${prefix}-db-a`
  const [a] = await make({ couch: createTestCouch() }, name)
  let late: string | undefined
  let reads = 0
  proxy.plan((request) => {
    if (isInfo(request)) return ofThreeCopies
    if (!request.path.startsWith(`/${name}/_changes`)) return undefined
    reads += 1
    return late === undefined ? undefined : answerWith(200, late)
  })
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY })
  await untilRest(rig)
  const { update_seq: last_seq } = await a!.info()
  await a!.put(order('one'))
  late = JSON.stringify({ results: [], last_seq, pending: 0 })
  const before = reads
  rig.report(name)
  await eventually(() => expect(reads).toBe(before + 1))
  late = undefined
  await eventually(async () => expect(await stateOf(a!, 'one')).toBe('invoiced'))
  await untilRest(rig)
})

test('a visit does not end while a request is open', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const name = `${prefix}-db-a`
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY })
  const [a] = await make(rig, name)
  await a!.put(order('first'))
  rig.report(name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['first']))
  await a!.put(order('second'))
  proxy.next(
    (exchange) => sleep(2500).then(() => pass(exchange)),
    ({ path }) => path.startsWith(`/${name}/_changes`),
  )
  rig.report(name)
  await eventually(() => expect(rig.handled).toEqual(['first', 'second']))
  await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
})

test('a listing finds a change that no event reports', async () => {
  const prefix = createPrefix()
  const rig = startVisits(prefix, { lookAgainMs: SOON })
  const [a] = await make(rig, `${prefix}-db-a`)
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0 }))
  await a!.put(order('one'))
  await eventually(async () => expect(await stateOf(a!, 'one')).toBe('invoiced'))
})

test('idle databases get no requests and no writes', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: SOON })
  const names = Array.from({ length: 10 }, (_, i) => `${prefix}-db-${i}`)
  await make(rig, ...names)
  const restful = () => expect(rig.visited()).toMatchObject({ databases: 10, open: 0, waiting: 0 })
  await eventually(restful)
  await sleep(1500)
  await eventually(restful)
  const before = proxy.requests.length
  const swept = () => proxy.requests.slice(before).filter(({ path }) => path.startsWith('/_dbs_info'))
  await eventually(() => expect(swept().length).toBeGreaterThan(2))
  const requested = proxy.requests.slice(before)
  expect(texts(requested.filter(({ path }) => names.some((name) => path.startsWith(`/${name}/`))))).toEqual([])
})

test('after a restart, unchanged databases cost one read each, and new documents are handled', async () => {
  const prefix = createPrefix()
  const names = Array.from({ length: 5 }, (_, i) => `${prefix}-db-${i}`)
  const first = startVisits(prefix, { lookAgainMs: SOON })
  const databases = await make(first, ...names)
  for (const database of databases) await database.put(order('before'))
  await eventually(() => expect(first.handled).toHaveLength(5))
  await untilRest(first, { databases: 5 })
  const others = databases.slice(1)
  const upToDate = async () => {
    const found = await Promise.all(others.map((database) => isUpToDate(first, database)))
    return others.filter((_, i) => found[i]).map(({ name }) => name)
  }
  await eventually(async () => expect(await upToDate()).not.toEqual([])) // listings start visits until then
  await first.stop()
  const unchanged = await upToDate()
  expect(unchanged).not.toEqual([])
  await databases[0]!.put(order('meanwhile'))

  const proxy = await startFaultyProxy()
  const second = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY })
  await eventually(() => expect(second.handled).toEqual(['meanwhile']))
  await eventually(() => expect(second.visited()).toMatchObject({ databases: 5, open: 0, waiting: 0 }))
  for (const name of unchanged) {
    const requested = texts(proxy.requests.filter(isOf(name)))
    expect(requested.map((text) => text.replace(/%3A\w+$/, ''))).toEqual([
      `GET /${name}/_local/couchdb-sidecar%3Avisits`,
    ])
  }
})

thoroughTest('a document is handled when it is due, and no visit stays open until then', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const clock = createShiftedClock()
  const rig = startVisits(prefix, { clock, lookAgainMs: HARDLY })
  const [a] = await make(rig, name)
  await a!.put(order('later', dueIn(600)))
  await a!.put(order('much-later', dueIn(9000)))
  rig.report(name, 'created')
  await untilRest(rig)
  expect(rig.handled).toEqual([])
  clock.advance(600_000)
  await eventually(() => expect(rig.handled).toEqual(['later']))
  await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
})

test('a recreated database is read from its start, and a deleted database is forgotten', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const rig = startVisits(prefix, { lookAgainMs: SOON })
  const [a] = await make(rig, name)
  for (let i = 0; i < 5; i++) await a!.put(order(`first-${i}`))
  await eventually(() => expect(rig.handled).toHaveLength(5))
  await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  await deleteDb(name)
  await nextSecond()
  await make(rig, name)
  await a!.put(order('second'))
  rig.report(name, 'created')
  await eventually(() => expect(rig.handled).toContain('second'))
  await deleteDb(name)
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 0, open: 0, waiting: 0 }))
})

test('slow handlers and an unreadable database do not delay other databases', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (path.startsWith(`/${prefix}-db-broken/_changes`) ? refuse(500) : undefined))
  let goOn = () => {}
  const held = new Promise<void>((resolve) => (goOn = resolve))
  const rig = startVisits(prefix, {
    ...{ by: proxy.url, lookAgainMs: SOON, reads: 1 },
    register: (control, handled) =>
      control.safe('order', 'paid', async (doc) => {
        if (doc.slow) await held
        handled.push(doc._id)
        return { ...doc, state: 'invoiced' }
      }),
  })
  const names = Array.from({ length: 6 }, (_, i) => `${prefix}-db-${i}`)
  const [, ...databases] = await make(rig, `${prefix}-db-broken`, ...names)
  for (const [i, database] of databases.entries()) await database.put(order(`order-${i}`, { slow: i < 4 }))
  await eventually(() => expect(rig.handled.sort()).toEqual(['order-4', 'order-5']))
  goOn()
  await eventually(() => expect(rig.handled).toHaveLength(6))
})

test('a busy database does not starve the others, because pages of all databases are read in turn', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY, reads: 1 })
  const [busy, quiet] = [`${prefix}-db-busy`, `${prefix}-db-quiet`]
  await make(rig, quiet)
  rig.report(quiet, 'created')
  await untilRest(rig)
  const [full] = await make(rig, busy)
  const padding = 'x'.repeat(20_000)
  const many = Array.from({ length: 1000 }, (_, i) => JSON.stringify(order(`order-${i}`, { padding })))
  for (let start = 0; start < 1000; start += 100) await full!.bulk(many.slice(start, start + 100))
  rig.report(busy, 'created')
  const pages = () => proxy.requests.filter(({ path }) => path.startsWith(`/${busy}/_changes`)).length
  await eventually(() => expect(pages()).toBeGreaterThan(1))
  await rig.couch.db(quiet).put(order('quiet'))
  rig.report(quiet)
  await eventually(() => expect(rig.handled).toContain('quiet'))
  expect(rig.handled.length).toBeLessThan(900)
  await eventually(() => expect(rig.handled).toHaveLength(1001))
})

test('a document that is due later is handled after other visits and a restart', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const first = startVisits(prefix, { lookAgainMs: HARDLY })
  const [a] = await make(first, name)
  await a!.put(order('later', dueIn(600)))
  await a!.put(order('much-later', dueIn(9000)))
  first.report(name, 'created')
  await untilRest(first)
  await a!.put(order('now'))
  first.report(name)
  await eventually(() => expect(first.handled).toEqual(['now']))
  await untilRest(first)
  await first.stop()

  const clock = createShiftedClock()
  const second = startVisits(prefix, { clock, lookAgainMs: HARDLY })
  await eventually(() => expect(second.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))
  await a!.put(order('again'))
  second.report(name)
  await eventually(() => expect(second.handled).toEqual(['again']))
  clock.advance(600_000)
  await eventually(() => expect(second.handled).toEqual(['again', 'later']))
  await eventually(() => expect(second.visited()).toMatchObject({ open: 0, waiting: 0 }))
  const checkpoint = await checkpointOf(second, a!)
  expect(Date.parse(String(checkpoint!.next_at)) - Date.now()).toBeGreaterThan(8_000_000)
})
