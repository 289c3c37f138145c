/** Renamed states: existing and new documents in the old state continue under the new name. */
import { expect, test } from 'vitest'
import { isoTime } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { actOnOne, retry } from '../../sidecar/docstate/operator/actions.ts'
import { explain } from '../../sidecar/docstate/operator/explain.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

const before = {
  bill: {
    overdue: { mode: 'unsafe', create: 'client', next: { reminded: 'sidecar' } },
    reminded: {},
    error: { next: { overdue: 'client' } },
  },
} as const
const machines = {
  bill: {
    overdue: { renamed: 'late' },
    late: { mode: 'unsafe', create: 'client', next: { reminded: 'sidecar' } },
    reminded: {},
    error: { next: { late: 'client' } },
  },
} as const

interface Run {
  readonly id: string
  readonly state: unknown
  readonly key: string
  readonly attempt: number
}

const remind =
  (runs: Run[], state: 'overdue' | 'late', fails = false) =>
  (control: Control) =>
    control.unsafe(
      'bill',
      state,
      ({ _id: id, state, ...doc }, { key, attempt }) => {
        runs.push({ id, state, key, attempt })
        return fails
          ? Promise.reject(new Error('no mail today'))
          : Promise.resolve({ ...doc, _id: id, state: 'reminded' })
      },
      { attempts: 3, backoff: { baseMs: 200, capMs: 200 } },
    )

const bill = (_id: string, docstate?: object) => ({
  ...{ _id, type: 'bill', state: 'overdue' },
  ...(docstate && { docstate: { state: 'overdue', ...docstate } }),
})

const claim = (begun: boolean) => ({
  claim: { worker: 'dead', token: 'of the dead', at: '2020-01-01T00:00:00.000Z', lease_ms: 1000, begun },
})
const DAY = 86_400_000

test('ready documents are renamed and handled once, and other documents are renamed with their status', async () => {
  const db = await freshDb('renamed')
  const later = isoTime(Date.now() + DAY)
  const failing = { entry: '1-a', attempts: 2, failure: { code: 'e', reason: 'r', at: later }, retry_at: later }
  await db.put(bill('new'))
  await db.put(bill('handled', { entry: '1-a', handled: later }))
  await db.put(bill('parked', { entry: '1-a', parked: { at: later, reason: 'lost' } }))
  await db.put(bill('failing', failing))
  await db.put(bill('lost', { entry: '1-a', ...claim(true) }))
  await db.put(bill('not begun', { entry: '1-a', ...claim(false) }))
  const runs: Run[] = []
  await startRig(db, remind(runs, 'late'), { machines, resyncMs: 300 })

  await eventually(async () => {
    expect(await stateOf(db, 'new')).toBe('reminded')
    expect(await stateOf(db, 'not begun')).toBe('reminded')
    for (const id of ['handled', 'parked', 'failing', 'lost']) expect(await stateOf(db, id), id).toBe('late')
  })
  expect(docstateIn(await db.get('handled'))).toEqual({
    ...{ state: 'late', entry: '1-a', entered_in: 'overdue', handled: later },
  })
  expect(docstateIn(await db.get('parked'))).toMatchObject({ state: 'late', parked: { reason: 'lost' } })
  expect(docstateIn(await db.get('failing'))).toEqual({ state: 'late', entered_in: 'overdue', ...failing })
  expect(docstateIn(await db.get('lost'))).toMatchObject({
    state: 'late',
    parked: { reason: expect.any(String) as string },
  })
  await db.put(bill('arriving'))
  await eventually(async () => expect(await stateOf(db, 'arriving')).toBe('reminded'))
  expect(runs.map(({ id }) => id).sort()).toEqual(['arriving', 'new', 'not begun'])
  expect(new Set(runs.map(({ state }) => state))).toEqual(new Set(['late']))
})

test('a renamed document keeps its attempts and its key, also after an error', async () => {
  const db = await freshDb('renamed')
  const runs: Run[] = []
  const old = await startRig(db, remind(runs, 'overdue', true), { machines: before })
  await db.put(bill('b'))
  await eventually(() => expect(runs.length).toBeGreaterThan(0))
  await old.stop()
  const tries = runs.length

  const failing = await startRig(db, remind(runs, 'late', true), { machines })
  await eventually(async () => expect(await stateOf(db, 'b')).toBe('error'))
  await failing.stop()
  expect(tries).toBeLessThan(3)
  expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  expect(runs.map(({ state }) => state)).toEqual([
    ...Array<string>(tries).fill('overdue'),
    ...Array<string>(3 - tries).fill('late'),
  ])

  await startRig(db, remind(runs, 'late'), { machines })
  expect(await actOnOne(db, 'b', retry)).toMatchObject({ kind: 'done' })
  await eventually(async () => expect(await stateOf(db, 'b')).toBe('reminded'))
  expect(new Set(runs.map(({ key }) => key)).size).toBe(1)
})

test('a retry of a document that failed under the old name uses the new name', async () => {
  const db = await freshDb('renamed')
  const runs: Run[] = []
  await startRig(db, remind(runs, 'late'), { machines })
  const docstate = { state: 'error', failed_in: 'overdue', entry: '1-a', attempts: 3 }
  await db.put({ _id: 'b', type: 'bill', state: 'error', error: { code: 'e', reason: 'r' }, docstate })
  await actOnOne(db, 'b', retry)
  await eventually(async () => expect(await stateOf(db, 'b')).toBe('reminded'))
  expect(runs).toHaveLength(1)
})

test('a worker with the old name finishes its running handler', async () => {
  const db = await freshDb('renamed')
  const go = createLatch()
  let begun = 0
  const hold = (control: Control) =>
    control.unsafe('bill', 'overdue', async (doc) => {
      begun += 1
      await go.opened
      return { ...doc, state: 'reminded' }
    })
  await startRig(db, hold, { machines: before, leaseMs: 8000 })
  await db.put(bill('b'))
  await eventually(() => expect(begun).toBe(1))
  const runs: Run[] = []
  await startRig(db, remind(runs, 'late'), { machines, worker: 'new', leaseMs: 8000, resyncMs: 200 })
  await new Promise((resolve) => setTimeout(resolve, 10_000)) // more than a lease
  expect(await stateOf(db, 'b')).toBe('overdue')
  go.open()
  await eventually(async () => expect(await stateOf(db, 'b')).toBe('reminded'))
  expect(runs).toEqual([])
})

test('three workers rename and handle each document once', async () => {
  const db = await freshDb('renamed')
  const runs: Run[] = []
  const ids = Array.from({ length: 150 }, (_, n) => `b${n}`)
  await db.bulk(ids.slice(0, 100).map((id) => JSON.stringify(bill(id))))
  for (const worker of ['one', 'two', 'three']) await startRig(db, remind(runs, 'late'), { machines, worker })
  await db.bulk(ids.slice(100).map((id) => JSON.stringify(bill(id))))
  await eventually(async () => {
    for (const { state } of await db.getMany(ids)) expect(state).toBe('reminded')
  })
  expect(runs.map(({ id }) => id).sort()).toEqual([...ids].sort())
})

test('a renamed document keeps its timeout, and a document without one gets a timeout', async () => {
  const db = await freshDb('renamed')
  const timed = (name: string) => ({ [name]: { timeout: { afterMs: DAY, next: 'reminded' } }, reminded: {} })
  const ends = isoTime(Date.now() + 3_600_000)
  await db.put(bill('known', { timeout_at: ends }))
  await db.put(bill('new'))
  await startRig(db, () => undefined, { machines: { bill: { overdue: { renamed: 'late' }, ...timed('late') } } })
  await eventually(async () => {
    for (const id of ['known', 'new']) expect(await stateOf(db, id)).toBe('late')
  })
  expect(docstateIn(await db.get('known'))).toEqual({ state: 'late', timeout_at: ends })
  expect(Date.parse(String(docstateIn(await db.get('new'))?.timeout_at)) - Date.now()).toBeGreaterThan(DAY - 60_000)
})

test('explain shows the new name of a renamed state', async () => {
  const db = await freshDb('renamed')
  await db.put(bill('b'))
  expect(await explained(db, 'b')).toContain(
    'The state overdue is now called late.\nA running sidecar renames the state in the document',
  )
})

async function explained(database: Database, id: string): Promise<string> {
  const table = { registrations: [], machines }
  const more = { served: true, guarded: machines, faultsOf: () => [], control: database, settings: {} }
  return (await explain({ database, table, clock: systemClock, id, ...more })).join('\n')
}
