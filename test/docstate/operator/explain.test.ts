import { describe, expect, test } from 'vitest'
import type { Machines } from '../../../ddocs/machine.ts'
import { systemClock } from '../../../sidecar/core/clock.ts'
import { createControl } from '../../../sidecar/docstate/control.ts'
import { explain, type ExplainOptions } from '../../../sidecar/docstate/operator/explain.ts'
import { createTestCouch, freshDb, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig } from '../rig.ts'

const machines: Machines = {
  order: {
    paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar', cancelled: 'owner' } },
    invoiced: { next: { late: 'sidecar', archived: 'client' }, timeout: { afterMs: 5_400_000, next: 'late' } },
    late: {},
    cancelled: {},
    archived: {},
  },
}

const defaults = {
  settings: {},
  clock: systemClock,
  id: 'o',
  served: true,
  guarded: machines,
  faultsOf: () => [],
}

/** What is told of a document in this state, by a sidecar with a handler for `paid`. */
async function told(state: string, options: Partial<ExplainOptions> = {}): Promise<string[]> {
  const database = await freshDb('explain')
  await database.put({ _id: 'o', type: 'order', state })
  const table = createControl<Machines>(machines)
  table.unsafe('order', 'paid', (order) => Promise.resolve({ ...order, state: 'invoiced' }), { attempts: 3 })
  return (await explain({ ...defaults, database, control: database, table, ...options })).slice(1)
}

const SERVED = /^A sidecar with these settings serves explain-/

describe('explain tells', () => {
  test('the handler of a state, and what may follow', async () => {
    expect(await told('paid')).toEqual([
      expect.stringMatching(SERVED),
      'It may become invoiced (by the sidecar), cancelled (by the owner).',
      'Its handler is unsafe, and tries up to 3 times, each at most 5 min.',
      'It is ready: a running sidecar takes it at once, or within a minute where no feed has told of it.',
    ])
  })

  test('that a handler never gives up, and that a database is not there', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), { attempts: Number.MAX_SAFE_INTEGER })
    expect(await told('paid', { table })).toContain(
      'Its handler is unsafe, and tries until it is done, each at most 5 min.',
    )
    const database = createTestCouch().db(uniqueName('nowhere'))
    await expect(explain({ ...defaults, database, control: database, table })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('what may keep it waiting, or gets it refused', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), {
      key: (order) => (order._id === 'o' ? 'ann' : undefined),
      limit: { count: 600, per: '1m' },
      globalConcurrency: 2,
      priority: 1,
      version: '7',
    })
    const lines = await told('paid', { table })
    expect(lines.slice(2, 7)).toEqual([
      'Its handler of version 7 is unsafe, and tries up to 20 times, each at most 5 min.',
      'Documents with its key, "ann", run one after the other.',
      'At most 2 run at the same time, in all workers together.',
      'Its priority is 1, where most have 5: lower ones come first.',
      'At most 600 begin in 1 min, in all workers together.',
    ])
    const broken = createControl<Machines>(machines)
    broken.unsafe('order', 'paid', () => Promise.resolve(), { key: ({ customer }) => (customer as string).trim() })
    expect((await told('paid', { table: broken }))[3]).toMatch(/^It will be refused: the handler's key throws/)
  })

  test('that it was there before a handler that takes only what is new', async () => {
    const database = await freshDb('explain')
    await database.put({ _id: 'o', type: 'order', state: 'paid' })
    await new Promise((resolve) => setTimeout(resolve, 1100)) // CouchDB says in seconds when a database was made
    const rig = await startRig(database, (control) =>
      control.safe('order', 'paid', (order) => Promise.resolve({ ...order, state: 'invoiced' }), { since: 'now' }),
    )
    await eventually(() => expect(rig.engine.health().following).toBe(true))
    await rig.stop()
    await database.put({ _id: 'n', type: 'order', state: 'paid' })
    const ask = { ...defaults, database, control: database, table: rig.control }
    expect((await explain(ask)).at(-1)).toMatch(/^It was there before its handler/)
    expect((await explain({ ...ask, id: 'n' })).at(-1)).toMatch(/^It is ready/)
  })

  test('that another handler is tried out on it', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), { shadow: true, version: '8' })
    expect((await told('paid', { table })).slice(2, 5)).toEqual([
      'No handler takes documents of type order in this state. Nothing happens by itself.',
      expect.stringContaining('The database declares one (unsafe)'),
      'A shadow handler of version 8 is tried out on it: its effects are withheld, and the log tells them.',
    ])
  })

  test('how long a state lasts', async () => {
    expect(await told('invoiced')).toEqual([
      expect.stringMatching(SERVED),
      'It may become late (by the sidecar), archived (by the client).',
      'After 90 min in this state it becomes late.',
      'No handler takes documents of type order in this state; only its time runs.',
      'Its time in this state begins when a sidecar sees it.',
    ])
  })

  test('that a state is the last, or none of the machine', async () => {
    expect((await told('archived')).join()).toContain('No state is declared to follow this one.')
    expect((await told('payed')).join()).toContain('has no such state, but paid, invoiced, late, cancelled, archived.')
  })

  test('what the database declares, where no handlers do', async () => {
    const table = createControl<Machines>({})
    const lines = await told('paid', { table })
    expect(lines).toContain('It may become invoiced (by the sidecar), cancelled (by the owner).')
    expect(lines.at(-1)).toBe(
      'The database declares one (unsafe): is SIDECAR_HANDLERS here that of the running sidecar?',
    )
    expect((await told('paid', { table, guarded: {} })).join()).toContain('No machine is declared for order')
  })

  test('that replication brought a revision beside it, and where to look if that stays', async () => {
    const database = await freshDb('explain')
    await database.merge([
      { _id: 'o', _rev: '1-a', _revisions: { start: 1, ids: ['a'] }, type: 'order', state: 'paid' },
      { _id: 'o', _rev: '1-b', _revisions: { start: 1, ids: ['b'] }, type: 'order', state: 'late' },
    ])
    const lines = await explain({ ...defaults, database, control: database, table: createControl<Machines>(machines) })
    expect(lines.slice(-3)).toEqual([
      'Replication has brought revisions beside it: a running sidecar makes one of them, and goes on from that.',
      'If they stay, its log tells what keeps it from doing so ("a conflict cannot be resolved").',
      'It has conflicting revisions: 1-a.',
    ])
  })

  test('that nobody serves the database, and that a handler is not started', async () => {
    expect((await told('paid', { served: false }))[0]).toMatch(/^No sidecar with these settings serves explain-/)
    const lines = await told('paid', { faultsOf: () => ['the database has another machine'] })
    expect(lines.at(-1)).toBe('It is not started: the database has another machine.')
  })
})
