/** Paused handlers in visited databases. No visit stays open, and all databases are visited after the pause. */
import pino from 'pino'
import { onTestFinished, expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { ownLimits } from '../../sidecar/docstate/handler-limits.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits, stateOf } from './rig.ts'

const PAUSED = { 'order/paid': { paused: true } }
/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

function createLimits(prefix: string) {
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  return ownLimits({
    control: createTestCouch().db(`${prefix}-control`),
    ...{ clock: systemClock, random: Math.random, log: pino({ level: 'silent' }), signal: stopping.signal },
  })
}

test('documents that arrive during a pause are handled after it, also after a restart', async () => {
  const prefix = createPrefix()
  const limits = createLimits(prefix)
  const first = startVisits(prefix, { lookAgainMs: HARDLY, limits })
  const names = Array.from({ length: 4 }, (_, i) => `${prefix}-db-${i}`)
  const databases = await make(first, ...names)
  limits.set(PAUSED)
  for (const database of databases.slice(0, 3)) await database.put(order('one'))
  for (const name of names) first.report(name, 'created')
  const areLeft = (rig: typeof first, visits: number) =>
    eventually(() => {
      expect(rig.visited()).toMatchObject({ databases: 4, open: 0, waiting: 0 })
      expect(rig.visited().visits).toBeGreaterThanOrEqual(visits)
    })
  await areLeft(first, 4)
  await databases[0]!.put(order('two'))
  first.report(names[0]!)
  await areLeft(first, 5)
  expect(first.handled).toEqual([])

  limits.set({})
  await eventually(() => expect(first.handled).toHaveLength(4))
  await areLeft(first, 8)
  limits.set(PAUSED)
  for (const database of databases.slice(1)) await database.put(order('three'))
  for (const name of names.slice(1)) first.report(name)
  await areLeft(first, 11)
  await first.stop()
  expect(first.handled).toHaveLength(4)

  const again = createLimits(prefix)
  again.set(PAUSED)
  const second = startVisits(prefix, { lookAgainMs: HARDLY, limits: again })
  await areLeft(second, 3)
  expect(second.handled).toEqual([])
  again.set({})
  await eventually(() => expect(second.handled).toHaveLength(3))
  for (const database of databases.slice(1)) {
    await eventually(async () => expect(await stateOf(database, 'three')).toBe('invoiced'))
  }
})

test('a document that arrives during a pause in a state with a timeout is handled after the pause', async () => {
  const prefix = createPrefix()
  const limits = createLimits(prefix)
  const machines = {
    order: {
      paid: {
        mode: 'safe',
        create: 'client',
        next: { invoiced: 'sidecar' },
        timeout: { afterMs: 3_600_000, next: 'late' },
      },
      invoiced: {},
      late: {},
    },
  } as const
  const rig = startVisits(prefix, { lookAgainMs: HARDLY, limits, machines })
  const [database] = await make(rig, `${prefix}-db-a`)
  limits.set(PAUSED)
  await database!.put(order('one'))
  rig.report(`${prefix}-db-a`, 'created')
  await eventually(() => {
    expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 })
    expect(rig.visited().visits).toBeGreaterThan(0)
  })
  expect(await database!.get('one')).toHaveProperty('docstate.timeout_at')
  limits.set({})
  await eventually(async () => expect(await stateOf(database!, 'one')).toBe('invoiced'))
})
