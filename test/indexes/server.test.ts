/** The indexer and the server's own activities. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock, type Clock } from '../../sidecar/core/clock.ts'
import { createTestCouch, freshDb, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { configure, fill, map, onlyBeginningWith, pendingIn, putDdoc, settings, startIndexes, write } from './rig.ts'

test('a server’s own index builder is detected, and indexes that stay stale for a minute are built', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const { couch, report, fresh, indexes } = startIndexes({ url: server.url, partition: onlyBeginningWith('left') })
  await eventually(() => expect(indexes.counts().serversKen).toBe('on'))
  const db = await fill(couch, 0, { one: map, two: map }, 'left')
  for (let round = 0; round < 5; round++) {
    await write(couch, db.name, 10)
    report(db.name)
    await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
    for (const name of ['one', 'two']) expect(await pendingIn(couch, db.name, name)).toBe(0)
  }
  await configure(couch, 'ken', 'batch_channels', '0')
  await configure(couch, 'ken', 'incremental_channels', '0')
  indexes.change({ ...settings, delay: 1 }) // sweeps again at once
  await eventually(() => expect(indexes.counts().serversKen).toBe('off'))
})

test('where the server builds indexes itself, changes within a second cause one check', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const proxy = await startFaultyProxy(server.url)
  const partition = onlyBeginningWith('often')
  const clock = fastClock(1 / 5) // a second is five, also for a busy machine
  const { couch, report, fresh, indexes } = startIndexes({ url: server.url, by: proxy.url, partition, clock })
  await eventually(() => expect(indexes.counts().serversKen).toBe('on'))
  const db = await fill(couch, 0, { one: map }, 'often')
  report(db.name, 'created')
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  const checks = () => proxy.requests.filter(({ path }) => path === `/${db.name}/_all_docs`).length
  const before = checks()
  for (let round = 0; round < 5; round++) {
    await write(couch, db.name, 1)
    report(db.name)
  }
  expect([checks(), indexes.counts().resubmitted]).toEqual([before, 1])
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(checks()).toBe(before + 1)
  expect(await pendingIn(couch, db.name, 'one')).toBe(0)
})

test('an index is built after a change of its database, on any server', async () => {
  const { report, fresh } = startIndexes({ partition: onlyBeginningWith('any') })
  const db = await freshDb('any')
  const couch = createTestCouch()
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  await write(couch, db.name, 3)
  report(db.name, 'created')
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  await write(couch, db.name, 3)
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
})

/** A clock that runs faster by this factor: at 60, a minute takes a second. */
const fastClock = (times: number): Clock => ({
  now: () => systemClock.now(),
  ticks: () => systemClock.ticks() * times,
  sleep: (ms, signal) => systemClock.sleep(ms / times, signal),
})

test('a full disk is reported and stops new builds until it has room', async () => {
  const proxy = await startFaultyProxy()
  const options = { by: proxy.url, partition: onlyBeginningWith('full'), clock: fastClock(10) }
  const { report, fresh, indexes, couch } = startIndexes(options)
  const db = await freshDb('full')
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  const reason = 'the view index directory is full'
  const full = refuse(507, { error: 'insufficient_storage', reason })
  proxy.plan(({ path }) => (path.includes('/_design/one/') ? full : undefined))
  report(db.name)
  await eventually(() => expect(indexes.counts()).toMatchObject({ paused: reason, building: 0 }))
  const requests = () => proxy.requests.filter(({ path }) => path.includes(db.name)).length
  report(db.name)
  await eventually(() => expect(indexes.counts().queued).toBe(1))
  const before = requests()
  await sleep(300) // three seconds of the minute without builds
  expect([requests(), fresh(db.name)]).toEqual([before, [false]])
  proxy.plan(() => undefined)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(indexes.counts().paused).toBeUndefined()
})

test('a nearly full disk stops new builds until the required space is lowered', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const { couch, report, fresh, indexes } = startIndexes({ url: server.url, settings: { min_free_disk: 100 } })
  await eventually(() => expect(indexes.counts().paused).toMatch(/^\d+\.\d % of the disk is free, less than 100$/))
  await configure(couch, 'ken', 'batch_channels', '0')
  await configure(couch, 'ken', 'incremental_channels', '0')
  const db = await fill(couch, 3, { one: map })
  report(db.name)
  await eventually(() => expect(indexes.counts().queued).toBeGreaterThan(0))
  expect(fresh(db.name)).toEqual([])
  indexes.change({ ...settings, min_free_disk: 0 })
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
})

test('a slow server gets fewer concurrent builds, and the full number when it is fast again', async () => {
  const proxy = await startFaultyProxy()
  const options = { by: proxy.url, partition: onlyBeginningWith('slow'), clock: fastClock(10) }
  const { report, fresh, indexes, couch } = startIndexes(options)
  const db = await freshDb('slow')
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  proxy.plan(() => delay(250))
  const change = async () => {
    await write(couch, db.name, 1)
    report(db.name)
  }
  await eventually(async () => {
    await change()
    expect(indexes.counts().pace).toBeLessThanOrEqual(1 / 4)
  })
  proxy.plan(() => undefined)
  await eventually(async () => {
    await change()
    expect(indexes.counts().pace).toBe(1)
  })
})

test('an unreachable server is retried without losing a build', async () => {
  const proxy = await startFaultyProxy()
  const options = { by: proxy.url, partition: onlyBeginningWith('away'), clock: fastClock(60) }
  const { report, fresh, couch } = startIndexes(options)
  const db = await freshDb('away')
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  await proxy.down()
  await write(couch, db.name, 1)
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([false]))
  await proxy.up()
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
})

test('a database is indexed again if it is created again while the indexer detects its deletion', async () => {
  const proxy = await startFaultyProxy()
  const db = await freshDb('again')
  await putDdoc(createTestCouch(), db.name, 'one', { views: { one: { map } } })
  const { report, fresh, indexes } = startIndexes({ by: proxy.url, partition: onlyBeginningWith('again') })
  await eventually(() => expect(proxy.requests.some(({ path }) => path.includes('_dbs_info'))).toBe(true))
  await eventually(() => expect(fresh(db.name)).toEqual([true])) // then no sweep runs for a minute
  indexes.setLimit(1)
  let goOn = () => {}
  const held = new Promise<void>((resolve) => (goOn = resolve))
  const notFound = refuse(404, { error: 'not_found', reason: 'Database does not exist.' })
  proxy.next(
    (exchange) => held.then(() => notFound(exchange)),
    ({ path }) => path.includes(`${db.name}/_all_docs`),
  )
  const reads = () => proxy.requests.filter(({ path }) => path.includes(`${db.name}/_all_docs`)).length
  const before = reads()
  report(db.name)
  await eventually(() => expect(reads()).toBe(before + 1))
  report(db.name, 'created')
  goOn()
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
})

test('a server that hides its nodes gets its indexes built', async () => {
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (/^\/_(membership|node|active_tasks)/.test(path) ? refuse(403) : undefined))
  const { report, fresh, couch, indexes } = startIndexes({ by: proxy.url, partition: onlyBeginningWith('hidden') })
  const db = await freshDb('hidden')
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  expect(indexes.counts().serversKen).toBe('unknown')
})

test('a server that rejects the login or is down gets no request for each of thousands of databases', async () => {
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (path.includes('/_all_docs') ? refuse(401) : undefined))
  const { indexes } = startIndexes({ by: proxy.url, partition: onlyBeginningWith('none'), clock: fastClock(10) })
  for (let i = 0; i < 200; i++) indexes.add(`none-${i}`)
  const reads = () => proxy.requests.filter(({ path }) => path.includes('/_all_docs')).length
  await eventually(() => expect(reads()).toBeGreaterThan(0))
  const began = Date.now()
  await eventually(() => expect(reads()).toBeGreaterThan(100)) // twenty at a time, with half a second between them
  expect(Date.now() - began).toBeGreaterThan(1500)
  proxy.plan(() => undefined) // none of the databases exists
  await eventually(() => expect(indexes.counts()).toMatchObject({ queued: 0, resubmitted: 0, databases: 0 }))
})

test('an idle indexer lists the databases and their sequences and writes nothing', async () => {
  const proxy = await startFaultyProxy()
  const options = { by: proxy.url, partition: onlyBeginningWith('idle'), clock: fastClock(120) }
  const { fresh, couch } = startIndexes(options)
  const db = await freshDb('idle')
  await putDdoc(couch, db.name, 'one', { views: { one: { map } } })
  await eventually(() => expect(fresh(db.name)).toEqual([true]))
  const swept = () => proxy.requests.filter(({ path }) => path === '/_all_dbs').length
  const [before, sweeps] = [proxy.requests.length, swept()]
  await eventually(() => expect(swept()).toBeGreaterThan(sweeps + 2))
  const seen = proxy.requests.slice(before).map(({ method, path }) => `${method} ${path}`)
  const ofServer = ['GET /', 'GET /_membership', 'GET /_node/_local/_config/ken', 'GET /_node/_local/_config/couchdb']
  const allowed = [...ofServer, 'GET /_all_dbs', 'POST /_dbs_info', `GET /${db.name}`] // the last: pouchdb-server
  expect([...new Set(seen)].filter((request) => !allowed.includes(request))).toEqual([])
})

test('the setters return the previous value and reject what CouchDB’s ken rejects', () => {
  const { indexes } = startIndexes({ partition: onlyBeginningWith('none') })
  const setLimit = (value: number) => indexes.setLimit(value)
  const setBatchSize = (value: number) => indexes.setBatchSize(value)
  const setDelay = (value: number) => indexes.setDelay(value)
  const setPruneInterval = (value: number) => indexes.setPruneInterval(value)
  const sets: [(value: number) => number, number, number][] = [
    [setLimit, 12, 20],
    [setLimit, 6, 12],
    [setBatchSize, 3, 1],
    [setBatchSize, 6, 3],
    [setDelay, 7000, 5000],
    [setDelay, 10_000, 7000],
    [setPruneInterval, 70_000, 60_000],
    [setPruneInterval, 80_000, 70_000],
    [setDelay, 0, 10_000],
  ]
  for (const [set, value, before] of sets) expect(set(value)).toBe(before)
  for (const set of [setLimit, setBatchSize, setPruneInterval]) {
    for (const value of [0, -12, 1.5, NaN]) expect(() => set(value)).toThrow(RangeError)
  }
  expect(() => setDelay(-12)).toThrow('delay: expected a whole number of milliseconds from 0')
  expect(() => setPruneInterval(1000)).toThrow(RangeError)
})
