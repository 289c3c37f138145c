/** Handlers that fail in visited databases. The document records the failure, and each attempt gets its visit. */
import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { docstateIn } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createSkippingClock } from '../support/skipping-clock.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig, type RigOptions } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const
/** Longer than a visit stays open for a due document. */
const backoff = { baseMs: 60_000, capMs: 60_000 }

const untilRest = (rig: Rig) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))

/** Registers a handler that fails on bad documents and records each attempt. */
const failing =
  (keys = new Set<string>()): NonNullable<RigOptions['register']> =>
  (control, handled) =>
    control.unsafe(
      'order',
      'paid',
      async (doc, { attempt, key }) => {
        handled.push(`${doc._id} ${attempt}`)
        keys.add(key)
        if (doc.bad) throw Object.assign(new Error('out of paper'), { code: 'EPAPER' })
        return { ...doc, state: 'invoiced' }
      },
      { attempts: 3, concurrency: 1, backoff },
    )

test('a failed document is retried in later visits when due, and ends in error', async () => {
  const prefix = createPrefix()
  const clock = createSkippingClock()
  const keys = new Set<string>()
  const own = { clock, register: failing(keys), lookAgainMs: HARDLY, random: () => 0.9 }
  const rig = startVisits(prefix, own)
  const [a] = await make(rig, `${prefix}-db-a`)
  await a!.put(order('o', { bad: true }))
  rig.report(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o 1']))
  await untilRest(rig)
  const failure = { code: 'EPAPER', reason: 'out of paper', at: expect.any(String) as string }
  const record = { state: 'paid', attempts: 1, failure, retry_at: expect.any(String) as string }
  expect(docstateIn(await a!.get('o'))).toMatchObject(record)

  const { visits } = rig.visited()
  rig.report(a!.name) // before the retry is due
  await eventually(() => expect(rig.visited().visits).toBeGreaterThan(visits))
  await untilRest(rig)
  expect(rig.handled).toEqual(['o 1'])
  clock.skip(60_000)
  rig.report(a!.name)
  await eventually(() => expect(rig.handled).toEqual(['o 1', 'o 2']))
  await untilRest(rig)
  await rig.stop()

  const next = startVisits(prefix, { ...own, worker: 'next' })
  await eventually(() => expect(next.visited().databases).toBe(1))
  await untilRest(next)
  expect(next.handled).toEqual([])
  clock.skip(60_000)
  next.report(a!.name)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('error'))
  expect(next.handled).toEqual(['o 3'])
  expect(keys.size).toBe(1) // the key is the same in all attempts, visits and workers
  expect(await a!.get('o')).toMatchObject({
    error: { code: 'EPAPER', reason: 'out of paper' },
    docstate: { failed_in: 'paid', attempts: 3 },
  })
})

test('a visit starts without an event when the next attempt is due', async () => {
  const prefix = createPrefix()
  const register: RigOptions['register'] = (control, handled) =>
    control.safe(
      'order',
      'paid',
      async (doc, { attempt }) => {
        handled.push(`${doc._id} ${attempt}`)
        if (attempt === 1) throw new Error('not yet')
        return { ...doc, state: 'invoiced' }
      },
      { backoff: { baseMs: 10_000, capMs: 10_000 } },
    )
  const rig = startVisits(prefix, { register, lookAgainMs: HARDLY, random: () => 0.9 })
  const [a] = await make(rig, `${prefix}-db-a`)
  await a!.put(order('o'))
  rig.report(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o 1']))
  await untilRest(rig)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  expect(rig.handled).toEqual(['o 1', 'o 2'])
})

test('documents that fail delay no others, in their database and elsewhere', async () => {
  const prefix = createPrefix()
  const names = ['a', 'b'].map((letter) => `${prefix}-db-${letter}`)
  const databases = await make({ couch: createTestCouch() }, ...names)
  const docs = Array.from({ length: 30 }, (_, i) => JSON.stringify(order(`o${i}`, { bad: i % 2 === 0 })))
  for (const database of databases) await database.bulk(docs)
  const rig = startVisits(prefix, { reads: 1, register: failing(), lookAgainMs: HARDLY, random: () => 0.9 })
  for (const database of databases) {
    await eventually(async () => {
      const { rows } = await viewOf(database, 'docstate', 'by_state', { group_level: 3 })
      expect(rows.map(({ key, value }) => [key, value])).toEqual([
        [['order', 'invoiced', 'ready'], 15],
        [['order', 'paid', 'retry'], 15],
      ])
    })
  }
  expect(rig.handled).toHaveLength(60)
})
