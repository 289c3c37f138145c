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

/** Explains a document in this state, for a sidecar with a handler for `paid`. */
async function linesOf(state: string, options: Partial<ExplainOptions> = {}): Promise<string[]> {
  const database = await freshDb('explain')
  await database.put({ _id: 'o', type: 'order', state })
  const table = createControl<Machines>(machines)
  table.unsafe('order', 'paid', (order) => Promise.resolve({ ...order, state: 'invoiced' }), { attempts: 3 })
  return (await explain({ ...defaults, database, control: database, table, ...options })).slice(1)
}

const SERVED = /^A sidecar with these settings serves explain-/

describe('the explain command', () => {
  test('explain shows the handler of a state and the possible next states', async () => {
    expect(await linesOf('paid')).toEqual([
      expect.stringMatching(SERVED),
      'The next state can be invoiced (by the sidecar) or cancelled (by the owner).',
      'The handler is unsafe, with an attempt limit of 3 and a timeout of 5 min.',
      'The document is ready. A running sidecar takes it at once, or within a minute if no feed reports it.',
    ])
  })

  test('explain shows an unlimited number of attempts and fails for a missing database', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), { attempts: Number.MAX_SAFE_INTEGER })
    expect(await linesOf('paid', { table })).toContain(
      'The handler is unsafe, with no attempt limit and a timeout of 5 min.',
    )
    const database = createTestCouch().db(uniqueName('nowhere'))
    await expect(explain({ ...defaults, database, control: database, table })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('explain shows the options that delay a document and a key that fails', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), {
      key: (order) => (order._id === 'o' ? 'ann' : undefined),
      limit: { count: 600, per: '1m' },
      globalConcurrency: 2,
      priority: 1,
      version: '7',
    })
    const lines = await linesOf('paid', { table })
    expect(lines.slice(2, 7)).toEqual([
      'The handler of version 7 is unsafe, with an attempt limit of 20 and a timeout of 5 min.',
      'The handler runs for one document with the key "ann" at a time.',
      'At most 2 attempts run in parallel, in all workers.',
      'The priority is 1 (default: 5). Lower numbers run first.',
      'At most 600 attempts start in 1 min, in all workers.',
    ])
    const broken = createControl<Machines>(machines)
    broken.unsafe('order', 'paid', () => Promise.resolve(), { key: ({ customer }) => (customer as string).trim() })
    expect((await linesOf('paid', { table: broken }))[3]).toMatch(/^The document will fail: the handler's key throws/)
  })

  test('explain shows that a document is older than a handler that takes only new documents', async () => {
    const database = await freshDb('explain')
    await database.put({ _id: 'o', type: 'order', state: 'paid' })
    // CouchDB stores the creation time of a database in seconds.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const rig = await startRig(database, (control) =>
      control.safe('order', 'paid', (order) => Promise.resolve({ ...order, state: 'invoiced' }), { since: 'now' }),
    )
    await eventually(() => expect(rig.engine.health().following).toBe(true))
    await rig.stop()
    await database.put({ _id: 'n', type: 'order', state: 'paid' })
    const ask = { ...defaults, database, control: database, table: rig.control }
    expect((await explain(ask)).at(-1)).toMatch(/^The document has not changed since the handler first started/)
    expect((await explain({ ...ask, id: 'n' })).at(-1)).toMatch(/^The document is ready/)
  })

  test('explain shows a shadow handler', async () => {
    const table = createControl<Machines>(machines)
    table.unsafe('order', 'paid', () => Promise.resolve(), { shadow: true, version: '8' })
    expect((await linesOf('paid', { table })).slice(2, 5)).toEqual([
      'No handler takes documents of type order in state paid. Nothing happens automatically.',
      expect.stringContaining('The database declares a handler (unsafe)'),
      'A shadow handler of version 8 runs on the document. The sidecar only logs its effects.',
    ])
  })

  test('explain shows the timeout of a state', async () => {
    expect(await linesOf('invoiced')).toEqual([
      expect.stringMatching(SERVED),
      'The next state can be late (by the sidecar) or archived (by the client).',
      'The state times out after 90 min. The document then goes to state late.',
      'No handler takes documents of type order in state invoiced. Only the timeout applies.',
      'The timeout of the state starts when a sidecar reads the document.',
    ])
  })

  test('explain shows that a state is final or undeclared', async () => {
    expect((await linesOf('archived')).join()).toContain('The machine declares no next state.')
    expect(await linesOf('payed')).toContain(
      'The machine of order has no state payed, only paid, invoiced, late, cancelled, archived.',
    )
  })

  test('explain shows the machine in the database if the handlers declare none', async () => {
    const table = createControl<Machines>({})
    const lines = await linesOf('paid', { table })
    expect(lines).toContain('The next state can be invoiced (by the sidecar) or cancelled (by the owner).')
    expect(lines.at(-1)).toBe(
      'The database declares a handler (unsafe). Use the SIDECAR_HANDLERS of the running sidecar.',
    )
    expect((await linesOf('paid', { table, guarded: {} })).join()).toContain('The type order has no machine')
  })

  test('explain shows conflicting revisions and the log message to search for', async () => {
    const database = await freshDb('explain')
    await database.merge([
      { _id: 'o', _rev: '1-a', _revisions: { start: 1, ids: ['a'] }, type: 'order', state: 'paid' },
      { _id: 'o', _rev: '1-b', _revisions: { start: 1, ids: ['b'] }, type: 'order', state: 'late' },
    ])
    const lines = await explain({ ...defaults, database, control: database, table: createControl<Machines>(machines) })
    expect(lines.slice(-3)).toEqual([
      'Replication created conflicting revisions. A running sidecar merges them and continues with the result.',
      'If the conflict stays, search the log of the sidecar for "a conflict cannot be resolved".',
      'The document has conflicting revisions: 1-a.',
    ])
  })

  test('explain shows that no sidecar serves the database and that a handler does not start', async () => {
    expect((await linesOf('paid', { served: false }))[0]).toMatch(/^No sidecar with these settings serves explain-/)
    const lines = await linesOf('paid', { faultsOf: () => ['the database has another machine'] })
    expect(lines.at(-1)).toBe('The sidecar does not start this handler: the database has another machine.')
  })
})
