/** A stop while handlers run in visited databases. */
import { expect, test } from 'vitest'
import { createLatch, docstateIn } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { countUnderWay } from '../support/under-way.ts'
import { createPrefix, make, order, startVisits, stateOf, type RigOptions } from './rig.ts'

const SOON = [300, 300] as const
const NEVER = new Promise<void>(() => undefined)

/** Registers unsafe handlers with concurrency 1. A lost order is retried, and a lost bill is parked. */
const waiting =
  (until: Promise<void>): NonNullable<RigOptions['register']> =>
  (control, handled) => {
    for (const [type, onLost] of [
      ['order', 'retry'],
      ['bill', 'park'],
    ] as const) {
      const options = { onLost, concurrency: 1, backoff: { baseMs: 50, capMs: 50 } }
      const handler = async (doc: { _id: string }) => {
        handled.push(doc._id)
        await until
        return { ...doc, state: 'invoiced' }
      }
      control.unsafe(type, 'paid', handler, options)
    }
  }

const makeTwo = (prefix: string) => make({ couch: createTestCouch() }, `${prefix}-db-a`, `${prefix}-db-b`)

test('a stop saves handlers that end within the grace period and leaves no visit open', async () => {
  const prefix = createPrefix()
  const databases = await makeTwo(prefix)
  for (const database of databases) await database.put(order('o'))
  const [go, proxy, requests] = [createLatch(), await startFaultyProxy(), countUnderWay()]
  proxy.plan(() => requests.fault)
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: SOON, register: waiting(go.opened) })
  await eventually(() => expect(rig.handled).toHaveLength(2))
  const stopped = rig.stop()
  await databases[0]!.put(order('too-late'))
  go.open()
  await stopped
  const { count } = requests
  for (const database of databases) expect(await stateOf(database, 'o')).toBe('invoiced')
  expect(rig.handled).toEqual(['o', 'o'])
  expect(rig.visited()).toMatchObject({ open: 0 })
  await eventually(() => expect(requests.now).toBe(0))

  const next = startVisits(prefix, { worker: 'next', lookAgainMs: SOON, register: waiting(Promise.resolve()) })
  await eventually(() => expect(next.handled).toEqual(['too-late']))
  expect(requests.count).toBe(count) // the stopped worker has sent no request since
})

test('a handler that does not end is given up according to onLost, and another worker continues', async () => {
  const prefix = createPrefix()
  const [a, b] = await makeTwo(prefix)
  const first = startVisits(prefix, { graceMs: 200, lookAgainMs: SOON, register: waiting(NEVER) })
  await a!.put(order('o'))
  await b!.put(order('b', { type: 'bill' }))
  await eventually(() => expect(first.handled.sort()).toEqual(['b', 'o']))
  await first.stop()
  expect(docstateIn(await a!.get('o'))).toMatchObject({ attempts: 1, retry_at: expect.any(String) as string })
  expect(docstateIn(await b!.get('b'))).toMatchObject({ parked: { reason: expect.any(String) as string } })

  const next = startVisits(prefix, { worker: 'next', lookAgainMs: SOON, register: waiting(Promise.resolve()) })
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  expect(next.handled).toEqual(['o'])
})

test('a stop releases waiting documents unchanged, and another worker takes them at once', async () => {
  const prefix = createPrefix()
  const databases = await makeTwo(prefix)
  const docs = Array.from({ length: 10 }, (_, i) => JSON.stringify(order(`o${i}`)))
  for (const database of databases) await database.bulk(docs)
  const own = { graceMs: 200, leaseMs: 600_000, lookAgainMs: SOON }
  const first = startVisits(prefix, { ...own, register: waiting(NEVER) })
  await eventually(() => expect(first.handled).toHaveLength(2))
  await first.stop()
  for (const database of databases) {
    const found = await database.getMany(Array.from({ length: 10 }, (_, i) => `o${i}`))
    expect(found.filter((doc) => docstateIn(doc)?.claim)).toEqual([])
  }
  const next = startVisits(prefix, { ...own, worker: 'next', register: waiting(Promise.resolve()) })
  await eventually(() => expect(next.handled).toHaveLength(20))
  expect(new Set(next.handled).size).toBe(10)
})
