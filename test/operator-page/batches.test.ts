/** Commands for many documents: their progress, their end, and their undo. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { orderFrom } from '../../sidecar/operator-page/actions.tsx'
import { Batches, type BatchOrder } from '../../sidecar/operator-page/batches.ts'
import type { Received } from '../../sidecar/operator-page/other-workers.ts'
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

/** Databases with the given numbers of failed orders, behind a proxy. */
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
      const batch = batches.get(id, [])!
      expect(batch.status).toBe(status)
      return batch
    })
  const statesOf = async (at: number) =>
    (await dbs[at]!.getMany(Array.from({ length: counts[at]! }, (_, n) => `o${n}`))).map(
      ({ docstate }) => Object(docstate) as { discarded?: { by: string } },
    )
  return { dbs, proxy, batches, begin, until, statesOf, lines, overs: () => overs }
}

test('a batch writes all documents of the filter, and undo restores the same documents', async () => {
  const { begin, until, statesOf, overs, lines, batches } = await setUp(3, 2)
  const { id } = await begin()
  const { sums, by, most } = await until(id, 'done')
  expect([sums.done, by, most, overs()]).toEqual([5, 'ann', 5, 1])
  expect((await statesOf(1)).map(({ discarded }) => discarded?.by)).toEqual(['ann', 'ann'])
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'an operator has acted', by: 'ann', done: 5 }))
  expect(batches.running([])).toEqual([])
  const undone = await begin(orderFrom(sums.undo!) as BatchOrder)
  expect((await until(undone.id, 'done')).sums.done, 'undo does not depend on a new count').toBe(5)
  expect((await statesOf(0)).some(({ discarded }) => discarded)).toBe(false)
})

test('a batch runs without an open page, reports its progress, and can be stopped', async () => {
  const { begin, until, statesOf, proxy, batches } = await setUp(600)
  let writes = 0
  proxy.plan(({ path }) => (path.includes('/_bulk_docs') && ++writes === 2 ? silence : undefined))
  const { id, status } = await begin()
  expect(status).toBe('running')
  await eventually(() => expect(batches.running([])[0]!.sums.done).toBe(500))
  await eventually(() => expect(writes).toBe(2))
  batches.stop(id)
  expect((await until(id, 'stopped')).sums).toMatchObject({ done: 500, undo: { verb: 'undo', by: 'ann' } })
  expect((await statesOf(0)).filter(({ discarded }) => discarded)).toHaveLength(500)
  expect((await until((await begin()).id, 'done')).sums.done).toBe(100) // the same batch continues
})

test('an unreadable database delays no other, and the batch names it', async () => {
  const { begin, until, statesOf, dbs, proxy } = await setUp(2, 2)
  proxy.plan(({ path }) => (path.startsWith(`/${dbs[0]!.name}/`) ? refuse(500) : undefined))
  const { sums } = await until((await begin()).id, 'done')
  expect(sums).toMatchObject({ done: 2, why: expect.stringMatching(`^${dbs[0]!.name} cannot be read: `) as string })
  expect((await statesOf(1)).every(({ discarded }) => discarded)).toBe(true)
})

test('a batch aborts while CouchDB is down and reports that', async () => {
  const { begin, until, proxy } = await setUp(2)
  await proxy.down()
  const { sums } = await until((await begin()).id, 'broken')
  expect(sums.why).toContain('CouchDB cannot be reached')
})

test('at most four batches run at the same time', async () => {
  const { begin, proxy, batches } = await setUp(2)
  proxy.plan(() => silence)
  const begun = await Promise.all(Array.from({ length: 4 }, () => begin()))
  await expect(begin()).rejects.toMatchObject({ status: 429 })
  batches.stop(begun[0]!.id)
  await eventually(() => expect(batches.running([])).toHaveLength(3))
  expect((await begin()).status).toBe('running')
})

/** The report of one worker, as another worker reads it. */
const heardFrom = (worker: string, content: object): Received => ({
  worker,
  data: { _id: `_local/${worker}`, ...(JSON.parse(JSON.stringify(content)) as object) },
})

test('other workers see the progress of a batch, stop it, and undo it', async () => {
  const { begin, until, proxy, batches } = await setUp(600)
  const other = new Batches({
    ...{ couch: createTestCouch(), controlDb: 'control', clock: systemClock, log: pino({ level: 'silent' }) },
    ...{ signal: new AbortController().signal, onOver: () => undefined },
  })
  const received = () => [heardFrom('a', { batches: batches.toSend })]
  let writes = 0
  proxy.plan(({ path }) => (path.includes('/_bulk_docs') && ++writes === 2 ? silence : undefined))
  const { id } = await begin()
  await eventually(() =>
    expect(other.running(received())).toMatchObject([{ id, worker: 'a', by: 'ann', most: 600, sums: { done: 500 } }]),
  )
  expect(other.get(id, [])).toBeUndefined()
  other.stop(id)
  expect(other.get(id, received())).toMatchObject({ isStopping: true, order: all })
  batches.stopOwn(other.stopping)
  await until(id, 'stopped')
  const { status, sums } = other.get(id, received())!
  expect([status, sums.done, orderFrom(sums.undo!)]).toMatchObject([
    'stopped',
    500,
    { verb: 'undo', of: { by: 'ann' } },
  ])
  expect(other.running(received())).toEqual([])
})

const content = {
  ...{ id: 'i', by: 'ann', at: '2026-01-01T00:00:00.000Z', most: 1, status: 'running' },
  ...{ fields: { verb: 'retry', type: 'order' }, sums: { done: 0, changed: 0, refused: 0 } },
}

test.each([
  [1, content],
  [0, { ...content, at: 'now' }],
  [0, { ...content, most: -1 }],
  [0, { ...content, status: 'lost' }],
  [0, { ...content, fields: { verb: 'delete' } }],
  [0, { ...content, fields: { verb: 'retry', db: 'shop', id: 'one' } }],
  [0, { ...content, sums: { ...content.sums, undo: { type: 5 } } }],
  [0, null],
])('%i batches are read from another worker that reports %j', async (count, one) => {
  const { batches } = await setUp()
  for (const content of [[one], one]) {
    const received = [heardFrom('a', { batches: content })]
    expect(batches.running(received)).toHaveLength(Array.isArray(content) ? count : 0)
  }
})
