/** Orders for many documents: how far they are, how they end, and what takes them back. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { orderFrom } from '../../sidecar/operator-page/actions.tsx'
import { Batches, type BatchOrder } from '../../sidecar/operator-page/batches.ts'
import { installDocstate } from '../docstate/install.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, silence, startFaultyProxy } from '../support/faulty-proxy.ts'

const failed = (n: number) => ({
  ...{
    _id: `o${n}`,
    type: 'order',
    state: 'error',
    error: { code: 'x', reason: 'because', at: '2026-01-01T00:00:00Z' },
  },
  docstate: { state: 'error', failed_in: 'paid' },
})
const all = orderFrom({ verb: 'discard', type: 'order' }) as BatchOrder

/** Databases with so many failed orders each, behind a proxy. */
async function setUp(...counts: readonly number[]) {
  const dbs: Database[] = []
  for (const count of counts) {
    const db = await freshDb('batch')
    await installDocstate(db, {})
    await db.bulk(Array.from({ length: count }, (_, n) => JSON.stringify(failed(n))))
    dbs.push(db)
  }
  const proxy = await startFaultyProxy()
  const lines: unknown[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const ending = new AbortController()
  onTestFinished(() => ending.abort(new Error('the test is over')))
  let overs = 0
  const batches = new Batches({
    ...{ couch: createTestCouch({ url: proxy.url }), controlDb: 'control', clock: systemClock, log },
    ...{ signal: ending.signal, onOver: () => overs++ },
  })
  const most = counts.reduce((sum, count) => sum + count, 0)
  const begin = (order = all) => batches.begin(order, { names: dbs.map(({ name }) => name), by: 'ann', most })
  const until = (id: string, status: string) =>
    eventually(() => {
      const batch = batches.get(id)!
      expect(batch.status).toBe(status)
      return batch
    })
  const statesOf = async (at: number) =>
    (await dbs[at]!.getMany(Array.from({ length: counts[at]! }, (_, n) => `o${n}`))).map(
      ({ docstate }) => Object(docstate) as { discarded?: { by: string } },
    )
  return { dbs, proxy, batches, begin, until, statesOf, lines, overs: () => overs }
}

test('all that the filter means are written, and the same is undone', async () => {
  const { begin, until, statesOf, overs, lines, batches } = await setUp(3, 2)
  const { id } = await begin()
  const { sums, by, most } = await until(id, 'done')
  expect([sums.done, by, most, overs()]).toEqual([5, 'ann', 5, 1])
  expect((await statesOf(1)).map(({ discarded }) => discarded?.by)).toEqual(['ann', 'ann'])
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'an operator has acted', by: 'ann', done: 5 }))
  expect(batches.running).toEqual([])
  const undone = await begin(orderFrom(sums.undo!) as BatchOrder)
  expect((await until(undone.id, 'done')).sums.done, 'also where no page has counted since').toBe(5)
  expect((await statesOf(0)).some(({ discarded }) => discarded)).toBe(false)
})

test('it goes on while no page waits for it, says how far it is, and is stopped', async () => {
  const { begin, until, statesOf, proxy, batches } = await setUp(600)
  let writes = 0
  proxy.plan(({ path }) => (path.includes('/_bulk_docs') && ++writes === 2 ? silence : undefined))
  const { id, status } = await begin()
  expect(status).toBe('running')
  await eventually(() => expect(batches.running[0]!.sums.done).toBe(500))
  await eventually(() => expect(writes).toBe(2))
  batches.stop(id)
  expect((await until(id, 'stopped')).sums).toMatchObject({ done: 500, undo: { verb: 'undo', by: 'ann' } })
  expect((await statesOf(0)).filter(({ discarded }) => discarded)).toHaveLength(500)
  expect((await until((await begin()).id, 'done')).sums.done).toBe(100) // the same order goes on
})

test('a database that cannot be read holds up no other, and is named', async () => {
  const { begin, until, statesOf, dbs, proxy } = await setUp(2, 2)
  proxy.plan(({ path }) => (path.startsWith(`/${dbs[0]!.name}/`) ? refuse(500) : undefined))
  const { sums } = await until((await begin()).id, 'done')
  expect(sums).toMatchObject({ done: 2, why: expect.stringMatching(`^${dbs[0]!.name} cannot be read: `) as string })
  expect((await statesOf(1)).every(({ discarded }) => discarded)).toBe(true)
})

test('it breaks off where CouchDB is away, and says so', async () => {
  const { begin, until, proxy } = await setUp(2)
  await proxy.down()
  const { sums } = await until((await begin()).id, 'broken')
  expect(sums.why).toContain('CouchDB cannot be reached')
})

test('no more than four are under way', async () => {
  const { begin, proxy, batches } = await setUp(2)
  proxy.plan(() => silence)
  const begun = await Promise.all(Array.from({ length: 4 }, () => begin()))
  await expect(begin()).rejects.toMatchObject({ status: 429 })
  batches.stop(begun[0]!.id)
  await eventually(() => expect(batches.running).toHaveLength(3))
  expect((await begin()).status).toBe('running')
})
