/** Builds when workers, CouchDB or the sidecar itself start and stop. */
import { expect, test } from 'vitest'
import { readIndexerTasks } from '../../sidecar/indexes/indexer-tasks.ts'
import { createNamePartition } from '../../sidecar/workers/name-partition.ts'
import { startRegistry } from '../workers/registries.ts'
import { createTestCouch, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { fill, map, onlyBeginningWith, pendingIn, slowMap, startIndexes, useQuietServer } from './rig.ts'

const { server, start } = useQuietServer()

test('two workers share the databases, and one of them builds each index', async () => {
  const prefix = uniqueName('i')
  const half = (rest: number) => ({
    ...onlyBeginningWith(prefix),
    isOurs: (name: string) => name.startsWith(prefix) && name.charCodeAt(name.length - 1) % 2 === rest,
    workers: () => 2,
  })
  const workers = [0, 1].map((rest) => startIndexes({ url: server().url, partition: half(rest) }))
  const names: string[] = []
  for (let i = 0; i < 8; i++) names.push((await fill(workers[0]!.couch, 3, { one: map }, prefix)).name)
  for (const name of names) for (const { report } of workers) report(name)
  await eventually(() => {
    for (const name of names) expect(workers.flatMap(({ fresh }) => fresh(name))).toEqual([true])
  })
})

test('remaining workers take over at once from a leaving worker', async () => {
  const prefix = uniqueName('i')
  const control = (await fill(createTestCouch({ url: server().url }), 0, {}, prefix)).name
  const database = createTestCouch({ url: server().url }).db(control)
  const workers = ['one', 'other'].map((self) => {
    const leaving = new AbortController()
    const registry = startRegistry(database)
    registry.register('sidecar', self, { timeoutMs: 10_000 }, leaving.signal)
    const partition = createNamePartition({
      registry,
      role: 'sidecar',
      self,
      takesPart: () => true,
      signal: leaving.signal,
    })
    const isOurs = (name: string) => name.startsWith(prefix) && partition.isOurs(name)
    return {
      ...startIndexes({ url: server().url, partition: { ...partition, isOurs } }),
      partition,
      leave: () => leaving.abort(),
    }
  })
  const [one, other] = workers as [(typeof workers)[0], (typeof workers)[0]]
  await eventually(() => expect([one.partition.workers(), other.partition.workers()]).toEqual([2, 2]))
  const names: string[] = []
  for (let i = 0; i < 8; i++) names.push((await fill(one.couch, 3, { one: map }, prefix)).name)
  for (const name of names) for (const { report } of workers) report(name)
  await eventually(() =>
    expect(names.flatMap((name) => [...one.fresh(name), ...other.fresh(name)])).toEqual(names.map(() => true)),
  )
  await other.stop()
  other.leave()
  await eventually(() => expect(names.flatMap((name) => one.fresh(name))).toEqual(names.map(() => true)))
})

test('the build of an index is completed after CouchDB is killed during the build', async () => {
  const { couch, fill, report, rows, fresh } = start()
  const db = await fill(100, { slow: slowMap(20) })
  report(db.name)
  await eventually(() => expect(rows(db.name)).toMatchObject([{ building: true }]))
  await server().restart()
  const quiet = createTestCouch({ url: server().url })
  await eventually(async () => expect(await quiet.db(db.name).info()).toBeTruthy())
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(await pendingIn(couch, db.name, 'slow')).toBe(0)
})

test('the indexer stops at once, and CouchDB continues its build', async () => {
  const { couch, fill, report, rows, indexes, stop } = start()
  const db = await fill(200, { slow: slowMap(20) })
  report(db.name)
  const tasks = async () => (await readIndexerTasks(couch)).filter(({ database }) => database === db.name)
  await eventually(async () => expect((await tasks()).length).toBeGreaterThan(0))
  expect(rows(db.name)).toMatchObject([{ building: true }])
  await stop()
  expect(indexes.counts().building).toBe(0)
  expect((await tasks()).length).toBeGreaterThan(0)
  const { changesDone } = (await tasks())[0]!
  await eventually(async () => expect((await tasks())[0]?.changesDone ?? Infinity).toBeGreaterThan(changesDone))
})
