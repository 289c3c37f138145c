/** Claims in databases of a glob: those of workers that live, and of those that do not. */
import { expect, test } from 'vitest'
import { createLatch, docstateIn } from '../docstate/rig.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { createPrefix, make, order, startVisits, stateOf, type RigOptions } from './rig.ts'

const SOON = [300, 300] as const
/** Only events bring a visit, after the first look. */
const HARDLY = [600_000, 600_000] as const

/** Unsafe; tells who has begun, and waits before it ends. */
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

/** As a worker leaves it that died; its lease is longer than a visit without anything to do. */
const abandoned = () => ({
  docstate: {
    state: 'paid',
    entry: '1-0',
    claim: { worker: 'dead', token: 'of the dead', at: new Date(0).toISOString(), lease_ms: 9000 },
  },
})

test('what a dead worker has left is found when its lease is over, some visits later', async () => {
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
    rig.tell(name, what)
    await eventually(() => expect(rig.visited().visits).toBeGreaterThan(visits))
  }
  for (const id of ['o', 'b']) expect((await a!.get(id))._rev).toMatch(/^1-/) // no lease is over yet
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  const parked = { reason: expect.stringContaining('dead') as string }
  await eventually(async () => expect(docstateIn(await a!.get('b'))?.parked).toMatchObject(parked))
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))
})

test('a claim is renewed as long as its handler runs, and no other worker that visits takes it over', async () => {
  const prefix = createPrefix()
  const [a] = await make({ couch: createTestCouch() }, `${prefix}-db-a`)
  const go = createLatch()
  const own = { leaseMs: 1000, lookAgainMs: SOON }
  const one = startVisits(prefix, { ...own, worker: 'one', register: unsafely('one', go.opened) })
  await a!.put(order('o'))
  await eventually(() => expect(one.handled).toEqual(['o']))
  const two = startVisits(prefix, { ...own, worker: 'two', register: unsafely('two', go.opened) })
  const claimedAt = async () => Date.parse((docstateIn(await a!.get('o'))!.claim as { at: string }).at)
  const first = await claimedAt()
  await eventually(() => expect(two.visited().reads).toBeGreaterThan(0))
  await eventually(async () => expect((await claimedAt()) - first).toBeGreaterThan(3500))
  go.open()
  await eventually(async () => expect(await a!.get('o')).toMatchObject({ state: 'invoiced', by: 'one' }))
  expect([...one.handled, ...two.handled]).toEqual(['o'])
})

test('a worker that is cut off loses its document to another that visits, and what it saves late is not saved', async () => {
  const prefix = createPrefix()
  const [a] = await make({ couch: createTestCouch() }, `${prefix}-db-a`)
  const [proxy, go] = [await startFaultyProxy(), createLatch()]
  const own = { leaseMs: 1000, lookAgainMs: SOON }
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
  await eventually(() => expect(first.visited().visits).toBeGreaterThan(visits)) // it is back
  await eventually(() => expect(first.visited()).toMatchObject({ open: 0, waiting: 0 }))
  expect(await a!.get('o', { conflicts: true })).toMatchObject({ _rev, by: 'second' })
  expect(second.handled).toContain('o')
})
