import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { CouchErrorCode } from '../../sidecar/couch/couch-errors.ts'
import { problemsOf } from '../../sidecar/databases/databases-feature.ts'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { engineSaying } from '../metrics/sources.ts'
import { deleteDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits } from './rig.ts'

const SOON = [300, 300] as const

test('the sidecar follows and awaits a named database, and databases of a glob come and go', async () => {
  const prefix = createPrefix()
  const [named, first, second] = [`${prefix}-named`, `${prefix}-db-a`, `${prefix}-db-b`]
  const rig = startVisits(prefix, { databases: [named, `${prefix}-db-*`], lookAgainMs: SOON })
  const { couch, engines, handled, databaseCounters, controlDb } = rig
  await make(rig, first)
  await eventually(() => expect(rig.visited().databases).toBe(1))
  const [b] = await make(rig, second)
  await b!.put(order('b1'))
  await eventually(() => expect(handled).toEqual(['b1']))
  const { runs } = databaseCounters.all.get(`${prefix}-db-*`)!.of({ type: 'order', state: 'paid' })
  await eventually(() => expect(runs.next).toBe(1))

  await deleteDb(first)
  await eventually(() => expect(rig.visited().databases).toBe(1))
  const [a] = await make(rig, first)
  await a!.put(order('a1'))
  await eventually(() => expect(handled).toEqual(['b1', 'a1']))
  await eventually(() => expect(runs.next).toBe(2))

  const [own] = await make(rig, named)
  await own!.put(order('n1'))
  await eventually(() => expect(handled).toContain('n1'))
  await eventually(() => expect([...engines.keys()].sort()).toEqual([controlDb, named].sort()))
  expect(problemsOf(engines)).toEqual([])
  await deleteDb(controlDb) // a named database: the sidecar waits for it
  await sleep(1000) // several listings
  await couch.db(second).put(order('b2'))
  await eventually(() => expect(handled).toContain('b2'))
  expect(engines.has(controlDb)).toBe(true)
})

test('the health report groups databases with the same problem and explains the problem', () => {
  const saying =
    (trouble: CouchErrorCode | undefined, following = false) =>
    (database: string) =>
      [database, engineSaying(new Counters(), { database, following, trouble })] as const
  const away = ['a', 'b', 'c', 'd', 'e'].map(saying('unreachable'))
  expect(problemsOf(new Map([...away, saying(undefined, true)('well'), saying('forbidden')('shop')]))).toEqual([
    'the feeds of a, b, c and 2 more are not followed: CouchDB cannot be reached (unreachable)',
    'the feed of shop is not followed: CouchDB does not let the sidecar read it (forbidden)',
  ])
  expect(problemsOf(new Map([saying(undefined)('new')]))).toEqual(['the feed of new is not followed yet'])
})
