/** Claims of live and dead workers in visited databases. */
import { expect, test } from 'vitest'
import { createLatch, docstateIn } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { createPrefix, make, order, startVisits, stateOf, type RigOptions } from './rig.ts'

const SOON = [300, 300] as const
/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

/** Registers an unsafe handler that records each start and waits before it ends. */
const unsafely =
  (by: string, until = Promise.resolve()): NonNullable<RigOptions['register']> =>
  (control, handled) =>
    control.unsafe(
      'order',
      'paid',
      async (doc) => {
        handled.push(doc._id)
        await until
        return { ...doc, state: 'invoiced', by }
      },
      { onLost: 'retry' },
    )

/** The fields of a document whose worker died. The lease is longer than an idle visit. */
const abandoned = () => ({
  docstate: {
    state: 'paid',
    entry: '1-0',
    claim: { worker: 'dead', token: 'of the dead', at: new Date(0).toISOString(), lease_ms: 9000 },
  },
})

test('a later visit finds the documents of a dead worker after the lease expires', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const register: RigOptions['register'] = (control) => {
    control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced' }), { onLost: 'retry' })
    control.unsafe('bill', 'paid', async (doc) => ({ ...doc, state: 'booked' }))
  }
  const rig = startVisits(prefix, { register, lookAgainMs: HARDLY })
  const [a] = await make(rig, name)
  await a!.put(order('o', abandoned()))
  await a!.put(order('b', { type: 'bill', ...abandoned() }))
  for (const what of ['created', 'updated'] as const) {
    const { visits } = rig.visited()
    rig.report(name, what)
    await eventually(() => expect(rig.visited().visits).toBeGreaterThan(visits))
  }
  for (const id of ['o', 'b']) expect((await a!.get(id))._rev).toMatch(/^1-/) // no lease has expired yet
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  const parked = { reason: expect.stringContaining('dead') as string }
  await eventually(async () => expect(docstateIn(await a!.get('b'))?.parked).toMatchObject(parked))
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))
})

test('a claim is renewed while its handler runs, and no other visiting worker takes it over', async () => {
  const prefix = createPrefix()
  const [a] = await make({ couch: createTestCouch() }, `${prefix}-db-a`)
  const go = createLatch()
  const own = { leaseMs: 8000, lookAgainMs: SOON }
  const one = startVisits(prefix, { ...own, worker: 'one', register: unsafely('one', go.opened) })
  await a!.put(order('o'))
  await eventually(() => expect(one.handled).toEqual(['o']))
  const two = startVisits(prefix, { ...own, worker: 'two', register: unsafely('two', go.opened) })
  const claimedAt = async () => Date.parse((docstateIn(await a!.get('o'))!.claim as { at: string }).at)
  const first = await claimedAt()
  await eventually(() => expect(two.visited().reads).toBeGreaterThan(0))
  await eventually(async () => expect((await claimedAt()) - first).toBeGreaterThan(10_000))
  go.open()
  await eventually(async () => expect(await a!.get('o')).toMatchObject({ state: 'invoiced', by: 'one' }))
  expect([...one.handled, ...two.handled]).toEqual(['o'])
})

test('a disconnected worker loses its document to another worker, and its late save is refused', async () => {
  const prefix = createPrefix()
  const [a] = await make({ couch: createTestCouch() }, `${prefix}-db-a`)
  const [proxy, go] = [await startFaultyProxy(), createLatch()]
  const own = { leaseMs: 4000, lookAgainMs: SOON }
  const first = startVisits(prefix, { ...own, by: proxy.url, worker: 'first', register: unsafely('first', go.opened) })
  await a!.put(order('o'))
  await eventually(() => expect(first.handled).toEqual(['o']))
  await proxy.down()
  const second = startVisits(prefix, { ...own, worker: 'second', register: unsafely('second') })
  await eventually(async () => expect(await a!.get('o')).toMatchObject({ state: 'invoiced', by: 'second' }))
  const { _rev } = await a!.get('o')
  go.open()
  await proxy.up()
  await a!.put(order('later'))
  await eventually(async () => expect(await stateOf(a!, 'later')).toBe('invoiced'))
  const { visits } = first.visited()
  await eventually(() => expect(first.visited().visits).toBeGreaterThan(visits)) // the first worker is connected again
  await eventually(() => expect(first.visited()).toMatchObject({ open: 0, waiting: 0 }))
  expect(await a!.get('o', { conflicts: true })).toMatchObject({ _rev, by: 'second' })
  expect(second.handled).toContain('o')
})
