/** Databases that CouchDB cannot read, while other databases wait for a visit. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { cut, refuse, startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { sample } from '../support/thorough.ts'
import { createPrefix, make, order, startVisits } from './rig.ts'

const HARDLY = [600_000, 600_000] as const

const troubles: readonly (readonly [string, Fault, number])[] = [
  ['connections break, and visits pause after ten failures in a row', cut, 12],
  ['CouchDB answers 500, and each database gets one attempt', refuse(500), 16],
]

test.each(sample(troubles, 2))('visits to unreadable databases do not run in a loop: %s', async (_, fault, most) => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY, reads: 1 })
  const names = Array.from({ length: 14 }, (_, i) => `${prefix}-db-${i}`)
  const databases = await make(rig, ...names)
  for (const name of names) rig.report(name, 'created')
  const atRest = { databases: 14, open: 0, waiting: 0 }
  await eventually(() => expect(rig.visited()).toMatchObject(atRest))
  const { visits } = rig.visited()

  proxy.plan(({ path }) => (path.startsWith(`/${prefix}-db-`) ? fault : undefined))
  for (const database of databases) await database.put(order('first'))
  for (const name of names) rig.report(name)
  await sleep(4000) // shorter than the delay before the next attempt
  expect(rig.visited().visits - visits).toBeLessThanOrEqual(most)

  proxy.plan(() => undefined)
  await eventually(() => expect(rig.handled).toHaveLength(14))
  await eventually(() => expect(rig.visited()).toMatchObject(atRest))
})
