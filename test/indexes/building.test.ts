import { expect, test } from 'vitest'
import { readIndexerTasks } from '../../sidecar/indexes/indexer-tasks.ts'
import { readViewIndex } from '../../sidecar/indexes/view-index.ts'
import { uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  endlessMap,
  map,
  onlyBeginningWith,
  pendingIn,
  putDdoc,
  settings,
  slowMap,
  startIndexes,
  useQuietServer,
  write,
} from './rig.ts'

const { server, start } = useQuietServer()

test('the indexes of a database have every change before the first query', async () => {
  const { couch, fill, report, fresh, indexes } = start()
  const db = await fill(10, { one: map, two: map })
  for (let round = 0; round < 3; round++) {
    await write(couch, db.name, 5)
    report(db.name)
    await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
    for (const name of ['one', 'two']) expect(await pendingIn(couch, db.name, name)).toBe(0)
  }
  expect(indexes.counts()).toMatchObject({ fresh: 2, behind: 0, failing: 0, building: 0, serversKen: 'off' })
})

test('changes during a build and right after it are built at once', async () => {
  const { couch, fill, report, rows, fresh } = start({ settings: { delay: 60_000 } })
  const db = await fill(20, { slow: slowMap(20) })
  report(db.name)
  await eventually(() => expect(rows(db.name)).toMatchObject([{ building: true }]))
  await write(couch, db.name, 5)
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(await pendingIn(couch, db.name, 'slow')).toBe(0)
  await write(couch, db.name, 1)
  report(db.name)
  await eventually(async () => expect(await pendingIn(couch, db.name, 'slow')).toBe(0))
})

test('with a batch size, changes collect until the batch is full or the delay is over', async () => {
  const { couch, fill, report, fresh, indexes } = start({ settings: { batch_size: 5, delay: 60_000 } })
  const db = await fill(1, { one: map })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  await write(couch, db.name, 4)
  report(db.name)
  await eventually(() => expect(indexes.counts()).toMatchObject({ queued: 0, resubmitted: 1 }))
  expect([fresh(db.name), await pendingIn(couch, db.name, 'one')]).toEqual([[false], 4])
  await write(couch, db.name, 1)
  report(db.name)
  await eventually(async () => expect(await pendingIn(couch, db.name, 'one')).toBe(0))
  await write(couch, db.name, 4)
  report(db.name)
  await eventually(() => expect(indexes.counts().resubmitted).toBe(1))
  expect(indexes.setDelay(100)).toBe(60_000)
  report(db.name)
  await eventually(async () => expect(await pendingIn(couch, db.name, 'one')).toBe(0))
})

test('a sweep finds changes without an event, including design documents and restarts', async () => {
  const { fill, fresh, prefix, couch } = start({ hasDatabaseEvents: () => false })
  const db = await fill(3, { one: map })
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  await putDdoc(couch, db.name, 'two', { views: { x: { map } } })
  await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
  const later = startIndexes({ url: server().url, partition: onlyBeginningWith(prefix) })
  await eventually(() => expect(later.fresh(db.name)).toEqual([true, true]))
})

test('a change of _security alone does not make an index stale', async () => {
  const { couch, fill, fresh, rows } = start({ hasDatabaseEvents: () => false })
  const db = await fill(3, { one: map })
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  await couch.request({ method: 'PUT', db: db.name, path: '_security', body: { members: { roles: ['_admin'] } } })
  expect(await pendingIn(couch, db.name, 'one')).toBeGreaterThan(0)
  await eventually(async () => expect(await pendingIn(couch, db.name, 'one')).toBe(0))
  await eventually(() => expect(rows(db.name)).toMatchObject([{ lag_changes: 0, lag_seconds: 0 }]))
})

test('autoupdate false, a design document without views, and an unsupported language are not built', async () => {
  const { couch, fill, report, rows, indexes } = start()
  const db = await fill(3, { one: map })
  await putDdoc(couch, db.name, 'off', { autoupdate: false, views: { x: { map } } })
  await putDdoc(couch, db.name, 'noviews', { autoupdate: { views: false }, views: { x: { map: `${map} ` } } })
  await putDdoc(couch, db.name, 'filters', { filters: { all: 'function () { return true }' } })
  await putDdoc(couch, db.name, 'cobol', { language: 'cobol', views: { x: { map: 'MULTIPLY A BY B' } } })
  report(db.name)
  await eventually(() => {
    expect(rows(db.name)).toMatchObject([{ ddoc: '_design/one', lag_seconds: 0 }])
    expect(indexes.counts()).toMatchObject({ fresh: 1, queued: 0 }) // an index found just now has no lag either
  })
  expect(await pendingIn(couch, db.name, 'off')).toBeGreaterThan(0)
  expect(await pendingIn(couch, db.name, 'noviews')).toBeGreaterThan(0)
  expect(indexes.counts()).toMatchObject({ behind: 0, failing: 0 })
})

test('Mango indexes are built, too', async () => {
  const { couch, fill, report, fresh } = start()
  const db = await fill(3, {})
  await couch.request({
    ...{ method: 'POST', db: db.name, path: '_index', body: { index: { fields: ['a'] }, ddoc: 'mango', name: 'by-a' } },
  })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(await pendingIn(couch, db.name, 'mango')).toBe(0)
})

test('all shards of an index in a partitioned database are built, and any shard’s error is reported', async () => {
  const { couch, report, fresh, rows, prefix } = start()
  await couch.request({ method: 'PUT', db: prefix, query: { partitioned: true, q: 4 } })
  const bulk = (count: number) =>
    couch.db(prefix).bulk(Array.from({ length: count }, (_, i) => JSON.stringify({ _id: `p${i}:${uniqueName('x')}` })))
  await bulk(20)
  await putDdoc(couch, prefix, 'each', { views: { one: { map } } })
  await putDdoc(couch, prefix, 'all', { views: { one: { map } }, options: { partitioned: false } })
  for (let round = 0; round < 2; round++) {
    report(prefix)
    await eventually(() => expect(fresh(prefix)).toEqual([true, true]))
    for (const name of ['each', 'all']) expect(await pendingIn(couch, prefix, name)).toBe(0)
    await bulk(20)
  }
  await putDdoc(couch, prefix, 'bad', { views: { one: { map: endlessMap.replace('"bad"', '"p7:"') } } })
  report(prefix)
  await eventually(() =>
    expect(rows(prefix).find(({ ddoc }) => ddoc === '_design/bad')?.error?.reason).toMatch(/timed out/),
  )
})

test('databases that are ignored by name or glob are not built, also after a change of the setting', async () => {
  const { couch, fill, report, rows, fresh, indexes } = start()
  const [one, other] = [await fill(3, { one: map }), await fill(3, { one: map })]
  report(one.name)
  await eventually(() => expect(fresh(one.name)).toEqual([true]))
  const ignore = [one.name, `${other.name.slice(0, -3)}*`]
  indexes.change({ ...settings, ignore })
  await eventually(() => expect(rows(one.name)).toEqual([]))
  for (const { name } of [one, other]) {
    await write(couch, name, 1)
    report(name)
  }
  await eventually(() => expect(indexes.counts().queued).toBe(0))
  expect([rows(one.name), rows(other.name)]).toEqual([[], []])
  expect(await pendingIn(couch, other.name, 'one')).toBeGreaterThan(0)
  indexes.change(settings)
  await eventually(() => expect([fresh(one.name), fresh(other.name)]).toEqual([[true], [true]]))
})

test('a changed database that becomes ignored during its check and build is not built again', async () => {
  const { couch, fill, report, rows, fresh, indexes } = start()
  const [one, other] = [await fill(100, { slow: slowMap(50) }), await fill(3, { one: map })]
  report(one.name)
  await eventually(() => expect(rows(one.name)).toMatchObject([{ building: true }]))
  await write(couch, one.name, 1)
  report(one.name)
  await eventually(() => expect([...indexes.entries()].filter(({ again }) => again)).toHaveLength(1))
  indexes.change({ ...settings, ignore: [one.name] })
  await eventually(() => expect([rows(one.name), indexes.counts().building]).toEqual([[], 0]))
  report(other.name)
  await eventually(() => expect(fresh(other.name)).toEqual([true])) // processed after the new setting
  expect(rows(one.name)).toEqual([])
})

test('the builds of a deleted database end', async () => {
  const { couch, fill, report, rows, indexes } = start()
  const db = await fill(100, { slow: slowMap(50) })
  report(db.name)
  await eventually(() => expect(rows(db.name)).toMatchObject([{ building: true }]))
  await couch.request({ method: 'DELETE', db: db.name })
  report(db.name, 'deleted')
  await eventually(() => expect([rows(db.name), indexes.counts().building]).toEqual([[], 0]))
})

test('a deletion without an event ends builds, too', async () => {
  const { couch, fill, report, rows, indexes } = start()
  const db = await fill(100, { slow: slowMap(50) })
  report(db.name)
  await eventually(() => expect(rows(db.name)).toMatchObject([{ building: true }]))
  await couch.request({ method: 'DELETE', db: db.name })
  await eventually(() => expect([rows(db.name), indexes.counts().building]).toEqual([[], 0]))
})

test.each([
  [2, 0],
  [0, 2],
])(
  'with %i batch and %i incremental channels, no more builds run, and every database is built',
  async (batch, incremental) => {
    const { couch, fill, report, fresh, indexes, prefix } = start({
      settings: { batch_channels: batch, incremental_channels: incremental, delay: 0 },
    })
    const names: string[] = []
    for (let i = 0; i < 5; i++) names.push((await fill(10, { slow: slowMap(10), other: slowMap(11) })).name)
    for (const name of names) report(name)
    const seen: number[] = []
    await eventually(async () => {
      seen.push(indexes.counts().building)
      const tasks = (await readIndexerTasks(couch)).filter(({ database }) => database.startsWith(prefix))
      seen.push(new Set(tasks.map(({ database, ddoc }) => `${database}/${ddoc}`)).size)
      for (const name of names) expect(fresh(name)).toEqual([true, true])
    })
    expect(Math.max(...seen)).toBeLessThanOrEqual(2)
    expect(Math.max(...seen)).toBeGreaterThan(0)
  },
)

test('a running build of an index has one waiting request, for any number of changes', async () => {
  const { couch, fill, report, fresh } = start()
  const db = await fill(60, { slow: slowMap(30) })
  let most = 0
  await eventually(async () => {
    await write(couch, db.name, 1)
    report(db.name)
    const { waiting } = await readViewIndex(couch, db.name, '_design/slow')
    most = Math.max(most, waiting)
    expect(most).toBeGreaterThan(0)
    if (most > 0) expect((await readViewIndex(couch, db.name, '_design/slow')).seq).toBeGreaterThan(60)
  })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(most).toBeLessThanOrEqual(2) // one for each of two shards
})

test('an endless map function is reported with a reason, delays no other, and is retried once repaired', async () => {
  const { couch, fill, report, rows, fresh, indexes } = start()
  const db = await fill(5, { bad: endlessMap, good: map })
  await couch.db(db.name).put({ _id: 'bad' })
  report(db.name)
  await eventually(() =>
    expect(rows(db.name).find(({ ddoc }) => ddoc === '_design/bad')?.error?.reason).toMatch(/timed out/),
  )
  expect(rows(db.name).find(({ ddoc }) => ddoc === '_design/good')).toMatchObject({ lag_seconds: 0, error: null })
  expect(indexes.counts()).toMatchObject({ failing: 1, resubmitted: 1 })
  await putDdoc(couch, db.name, 'bad', { views: { one: { map } } })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
  expect(indexes.counts()).toMatchObject({ failing: 0 })
})
