/** Documents in undeclared states in visited databases. The count needs no request to idle databases. */
import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits, type Rig } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const
const before: Machines = { order: { paid: { mode: 'safe', next: { invoiced: 'sidecar' } }, invoiced: {}, held: {} } }
const renamed: Machines = { order: { paid: { mode: 'safe', next: { invoiced: 'sidecar' } }, invoiced: {}, kept: {} } }

const atRest = (rig: Rig, databases: number) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases, open: 0, waiting: 0 }))
const counted = (rig: Rig, prefix: string) =>
  Object.fromEntries(rig.databaseCounters.all.get(`${prefix}-db-*`)!.undeclared)
const held = (count: number) => [{ type: 'order', state: 'held', count }]

test('documents in an undeclared state are counted for each database, also after a restart', async () => {
  const prefix = createPrefix()
  const [a, b] = [`${prefix}-db-a`, `${prefix}-db-b`]
  const first = startVisits(prefix, { machines: before, lookAgainMs: HARDLY })
  const [database, other] = await make(first, a, b)
  await database!.put(order('o1', { state: 'held' }))
  await other!.put(order('o2'))
  for (const name of [a, b]) first.report(name, 'created')
  await eventually(() => expect(first.handled).toEqual(['o2']))
  await atRest(first, 2)
  expect(counted(first, prefix)).toEqual({})
  await first.stop()

  for (let starts = 0; starts < 2; starts++) {
    const rig = startVisits(prefix, { machines: renamed, lookAgainMs: HARDLY })
    await eventually(() => expect(counted(rig, prefix)).toEqual({ [a]: held(1) }))
    await atRest(rig, 2)
    await rig.stop()
  }

  const rig = startVisits(prefix, { machines: renamed, lookAgainMs: HARDLY })
  await eventually(() => expect(counted(rig, prefix)).toEqual({ [a]: held(1) }))
  await database!.put(order('o3', { state: 'held' }))
  rig.report(a)
  await eventually(() => expect(counted(rig, prefix)).toEqual({ [a]: held(2) }))
  await atRest(rig, 2)
  for (const id of ['o1', 'o3']) await database!.put({ ...(await database!.get(id)), state: 'kept' })
  rig.report(a)
  await eventually(() => expect(counted(rig, prefix)).toEqual({}))
  await atRest(rig, 2)
})

test('a declared rename of a state also applies in databases without changes', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const first = startVisits(prefix, { machines: before, lookAgainMs: HARDLY })
  const [database] = await make(first, name)
  await database!.put(order('o1', { state: 'held' }))
  await database!.put(order('o2'))
  first.report(name, 'created')
  await eventually(() => expect(first.handled).toEqual(['o2']))
  await atRest(first, 1)
  await first.stop()

  const machines: Machines = { order: { ...renamed.order, held: { renamed: 'kept' } } }
  const rig = startVisits(prefix, { machines, lookAgainMs: HARDLY })
  await eventually(async () => expect((await database!.get('o1')).state).toBe('kept'))
  await atRest(rig, 1)
  expect(counted(rig, prefix)).toEqual({})
})
