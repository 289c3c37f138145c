/** Handlers that are slower than the arriving documents, and their effect on other handlers. */
import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { viewOf } from '../../support/answers.ts'
import { createByteBudget } from '../../../sidecar/core/byte-budget.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import { Keys } from '../../../sidecar/docstate/keys.ts'
import { listPagesOf } from '../../../sidecar/docstate/finding/pages.ts'
import { Backlog } from '../../../sidecar/docstate/finding/backlog.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { handlerDefaults } from '../../../sidecar/docstate/handler-options.ts'
import type { HandlerQueue } from '../../../sidecar/docstate/finding/handler-queues.ts'
import { everything } from '../../../sidecar/workers/partitioning.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { sample } from '../../support/thorough.ts'
import { createLatch, startRig, stateOf } from '../rig.ts'

const padding = 'x'.repeat(10_000)

async function writeSlow(db: Database, from: number, to: number): Promise<void> {
  const docs = Array.from({ length: to - from }, (_, i) => ({
    _id: `s${from + i}`,
    type: 'slow',
    state: 'new',
    padding,
  }))
  await db.bulk(docs.map((doc) => JSON.stringify(doc)))
}

async function expectAllDone(db: Database, count: number): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
      expect(rows).toContainEqual({ key: ['slow', 'done'], value: count })
    },
    { within: 60_000 }, // on a slow machine, an unconfirmed claim waits for its lease, and no resync runs in time
  )
}

/** A small byte budget, and a resync too late to help. */
const options = () => ({ byteBudget: createByteBudget(1_000_000), resyncMs: 3_600_000 })

test.each(sample(['unsafe', 'safe'] as const, 2))(
  'a %s handler that hangs delays no other, and its backlog is handled when it continues',
  async (mode) => {
    const db = await freshDb('backlog')
    await writeSlow(db, 0, 250)
    const go = createLatch()
    const runs = new Map<string, number>()
    const { engine } = await startRig(
      db,
      (control: Control) => {
        control[mode]('slow', 'new', async (doc) => {
          runs.set(doc._id, (runs.get(doc._id) ?? 0) + 1)
          await go.opened
          return { ...doc, state: 'done' }
        })
        control.safe('quick', 'new', (doc) => Promise.resolve({ ...doc, state: 'done' }))
      },
      options(),
    )
    await eventually(() => expect(engine.health().inFlight).toBeGreaterThan(30))
    await db.put({ _id: 'q', type: 'quick', state: 'new' })
    await eventually(async () => expect(await stateOf(db, 'q')).toBe('done'))
    await writeSlow(db, 250, 300)
    await db.put({ _id: 'r', type: 'quick', state: 'new' })
    await eventually(async () => expect(await stateOf(db, 'r')).toBe('done'))
    expect(engine.health().inFlight).toBeLessThan(60)
    go.open()
    await expectAllDone(db, 300)
    expect([...runs.values()].filter((count) => count !== 1)).toEqual([])
  },
)

test('documents that arrive while a handler catches up are handled, too', async () => {
  const db = await freshDb('backlog')
  await writeSlow(db, 0, 200)
  await startRig(
    db,
    (control) =>
      control.safe(
        'slow',
        'new',
        (doc) => new Promise((resolve) => setTimeout(() => resolve({ ...doc, state: 'done' }), 50)),
        { concurrency: 2 },
      ),
    options(),
  )
  for (let from = 200; from < 400; from += 10) {
    await writeSlow(db, from, from + 10)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await expectAllDone(db, 400)
})

test('due retries are handled while their handler has a backlog', async () => {
  const db = await freshDb('backlog')
  await writeSlow(db, 0, 200)
  const failed = new Set<string>()
  await startRig(
    db,
    (control) =>
      control.safe(
        'slow',
        'new',
        async (doc) => {
          if (failed.size < 200 && failed.add(doc._id)) throw new Error('not yet')
          await new Promise((resolve) => setTimeout(resolve, 50))
          return { ...doc, state: 'done' }
        },
        { backoff: { baseMs: 10, capMs: 10 }, concurrency: 4 },
      ),
    options(),
  )
  await expectAllDone(db, 200)
})

test('a warning is logged if no handler has ended for a minute and its byte budget is used up', async () => {
  const share = createByteBudget(100).share()
  while (share.tryEnter(10));
  const handler = () => Promise.resolve()
  const registration = { type: 'slow', state: 'new', mode: 'safe', handler, options: handlerDefaults } as const
  const keys = new Keys(() => undefined)
  const queue: HandlerQueue = { registration, run: () => Promise.resolve('settled'), share, keys }
  const clock = createManualClock()
  const write = vi.fn()
  const backlog = new Backlog({
    ...{
      listPages: listPagesOf(createTestCouch().db('none')),
      partition: everything,
      clock,
      random: Math.random,
      log: pino({}, { write }),
    },
    readAndDispatch: () => Promise.reject(new Error('nothing is to be read while there is no room')),
  })
  const stopping = new AbortController()
  const running = backlog.run(stopping.signal)
  backlog.add(queue)
  await vi.waitFor(() => expect(clock.sleeping).toBe(1))
  share.leave(10)
  await clock.advance(60_000)
  expect(write).not.toHaveBeenCalled()
  await vi.waitFor(() => expect(clock.sleeping).toBe(1))
  await clock.advance(60_000)
  await vi.waitFor(() => expect(write).toHaveBeenCalledOnce())
  expect(write.mock.calls[0]![0]).toMatch(
    /"type":"slow","state":"new".*no handler has ended for a minute; its byte budget is used up/,
  )
  stopping.abort(new Error('the test is over'))
  await expect(running).rejects.toThrow('the test is over')
})
