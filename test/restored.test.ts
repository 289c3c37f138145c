/** Files of an older copy are restored under a running sidecar. Its checkpoints do not cover later writes. */
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../sidecar/couch/database.ts'
import type { Seq } from '../sidecar/couch/documents.ts'
import { changesAt } from '../sidecar/couch/shard-seqs.ts'
import { eventDatabase, updatesOf } from './global-changes/reading/event-database.ts'
import { createFeed } from './global-changes/reading/rig.ts'
import { settings, startGlobalChanges } from './global-changes/writing/rig.ts'
import { configure, map, onlyBeginningWith, settings as kenSettings, startIndexes } from './indexes/rig.ts'
import { answerOf } from './support/answers.ts'
import { createTestCouch, needs, startPrivateCouch, type PrivateCouch } from './support/couchdb.ts'
import { FIRST_RANGE, LAST_RANGE, findCouchBinary, only } from './support/couchdb-binary.ts'
import { eventually } from './support/eventually.ts'
import { startFaultyProxy } from './support/faulty-proxy.ts'
import { installDocstate } from './docstate/install.ts'
import { make, order, startVisits } from './databases/rig.ts'

let server: PrivateCouch | undefined
beforeAll(async () => {
  if (findCouchBinary()) server = await startPrivateCouch()
})
afterAll(() => server?.stop())

/** No resync and no sweep runs during the test. The sidecar lists all databases only after a break. */
const SELDOM = { lookAgainMs: [600_000, 600_000], sweepMs: 600_000 } as const

const put = async (database: Database, prefix: string, count: number) =>
  void (await database.bulk(Array.from({ length: count }, (_, i) => JSON.stringify(order(`${prefix}${i}`)))))
const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

test('documents in restored databases are handled, below and above the stored checkpoints', async () => {
  needs('private server')
  const proxy = await startFaultyProxy(server!.url)
  const [whole, range, passed, named] = ['f-db-whole', 'f-db-range', 'f-db-passed', 'f-named'] as const
  const followed = ['f-named', 'f-named-passed', 'f-named-range']
  const visited = ['f-db-whole', 'f-db-range', 'f-db-passed']
  const names = [...visited, ...followed]
  const databases = await make({ couch: createTestCouch({ url: server!.url }) }, ...names)
  for (const database of databases) await installDocstate(database, {})
  const rig = startVisits('f', {
    ...{ url: server!.url, by: proxy.url, ...SELDOM },
    databases: ['f-db-*', ...followed],
    register: (control, handled) =>
      control.safe('order', 'paid', (doc, { database }) => {
        handled.push(`${database} ${doc._id}`)
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
  })
  const isHandled = (prefix: string, count: number) =>
    eventually(() => {
      const missing = names.flatMap((name) =>
        ids(prefix, count).flatMap((id) => (rig.handled.includes(`${name} ${id}`) ? [] : [`${name} ${id}`])),
      )
      expect(missing).toEqual([])
    })
  const write = async (prefix: string, count: number) => {
    for (const database of databases) await put(database, prefix, count)
    for (const name of visited) rig.report(name)
  }
  /** Resolves when the checkpoints, including the stored ones, cover all handled changes. */
  const untilStored = async () => {
    await eventually(() => expect(rig.visited()).toMatchObject({ databases: 3, open: 0, waiting: 0 }))
    for (const database of databases) {
      if (!followed.includes(database.name)) continue
      await eventually(async () => {
        const [checkpoint, info] = await Promise.all([database.get('_local/couchdb-sidecar:one'), database.info()])
        expect(changesAt(checkpoint.seq as Seq)).toBe(changesAt(info.update_seq))
      })
    }
  }
  await write('before', 10)
  await isHandled('before', 10)
  await untilStored()
  const copy = await server!.copy()
  await write('lost', 40)
  await isHandled('lost', 40)
  await untilStored()

  await proxy.down()
  await server!.restart(
    only(copy, [whole, passed, named, 'f-named-passed']),
    only(copy, [range, 'f-named-range'], LAST_RANGE),
  )
  for (const database of databases) {
    const isBeyond = database.name.endsWith('passed')
    await put(database, 'after', 6)
    if (isBeyond) await put(database, 'beyond', 200)
  }
  await proxy.up()
  await isHandled('after', 6)
})

test('documents in a restored database are handled while its visit stays open', async () => {
  needs('private server')
  const proxy = await startFaultyProxy(server!.url)
  const [database] = await make({ couch: createTestCouch({ url: server!.url }) }, 'o-db-open')
  await installDocstate(database!, {})
  let begun = false
  const rig = startVisits('o', {
    ...{ url: server!.url, by: proxy.url, ...SELDOM, graceMs: 500 },
    register: (control, handled) =>
      control.safe('order', 'paid', async (doc, { signal }) => {
        handled.push(doc._id)
        begun ||= doc._id === 'endless'
        if (doc._id === 'endless') await once(signal, 'abort')
        return { ...doc, state: 'invoiced' }
      }),
  })
  const handle = async (prefix: string, count: number) => {
    await put(database!, prefix, count)
    rig.report(database!.name)
    await eventually(() => expect(rig.handled).toEqual(expect.arrayContaining(ids(prefix, count))))
  }
  await handle('before', 10)
  const copy = await server!.copy()
  await handle('lost', 40)
  await database!.put(order('endless'))
  rig.report(database!.name)
  await eventually(() => expect(begun).toBe(true))
  await proxy.down()
  await server!.restart(only(copy, [database!.name]))
  await put(database!, 'after', 6)
  await proxy.up()
  await eventually(() => expect(rig.handled).toEqual(expect.arrayContaining(ids('after', 6))))
})

/** Writes the events of all databases into a database of the test. The server has a feed of all databases. */
async function startEvents(name: string, by = server!.url) {
  const couch = createTestCouch({ url: server!.url })
  await couch.db('_global_changes').create()
  const rig = startGlobalChanges({ url: server!.url, by, name })
  const { changes } = rig
  let intervalMs = settings.sweep_interval
  return {
    ...rig,
    couch,
    /** Lists all databases and writes the events that it finds. */
    sweep: async () => {
      const began = performance.now()
      changes.change({ ...settings, sweep_interval: (intervalMs += 1) })
      await eventually(() => expect(changes.counts().sweptMsAgo).toBeLessThan(performance.now() - began))
    },
    timesOf: async (event: string, database: string) => {
      const written = await rig.written(database)
      return parseInt(written.find((text) => text.startsWith(event))?.split(' ')[1] ?? '0')
    },
  }
}

test('a restored database gets an updated event, for all files and for one range', async () => {
  needs('private server')
  const names = ['e-whole', 'e-range']
  const proxy = await startFaultyProxy(server!.url)
  const { couch, seen, sweep, timesOf } = await startEvents('events-of-copies', proxy.url)
  const databases = await make({ couch }, ...names)
  for (const database of databases) await put(database, 'before', 10)
  const copy = await server!.copy()
  for (const database of databases) await put(database, 'lost', 40)
  for (const name of names) await seen(name, ['created', 'updated'])
  await sweep()
  await proxy.down()
  const before = await Promise.all(names.map((name) => timesOf('updated', name)))
  // With the server's own feed, which then has no rows.
  await server!.restart(only(copy, ['e-whole', '_global_changes']), only(copy, ['e-range'], LAST_RANGE))
  await proxy.up()
  await sweep()
  const after = await Promise.all(names.map((name) => timesOf('updated', name)))
  for (const [i, times] of after.entries()) expect(times, names[i]).toBeGreaterThan(before[i]!)
})

test('lost events are written again after a restore, of all files and of one range', async () => {
  needs('private server')
  const { couch, name, seen, sweep } = await startEvents('events-lost')
  const [gone] = await make({ couch }, 'l-gone')
  await seen('l-gone', ['created'])
  await sweep()
  const copy = await server!.copy()
  const names = ['l-a', 'l-b', 'l-c', 'l-d']
  await gone!.drop()
  const databases = await make({ couch }, ...names)
  for (const database of databases) await database.put(order('one'))
  const areSeen = async () => {
    for (const name of names) await seen(name, ['created', 'updated'])
    await seen('l-gone', ['created', 'deleted'])
  }
  await areSeen()
  for (const older of [only(copy, [name]), only(copy, [name], LAST_RANGE)]) {
    await sweep()
    await server!.restart(older)
    await areSeen()
  }
})

test.each([
  ['of all files', ''],
  ['of one range', FIRST_RANGE],
])('readers of _db_updates receive the events after an older copy %s is restored', async (_, range) => {
  needs('private server')
  const couch = createTestCouch({ url: server!.url })
  const [made] = await make({ couch }, `read${range}`)
  const db = eventDatabase(made!)
  const { run, collect } = createFeed(db.name, couch)
  run()
  const live = collect()
  await db.report(...updatesOf(10))
  const copy = await server!.copy()
  await db.report(...updatesOf(50, 10))
  await eventually(() => expect(live.ids()).toHaveLength(60))
  const since = (await db.info()).update_seq
  await server!.restart(only(copy, [db.name], range))
  const news = updatesOf(6, 100)
  await db.report(...news)
  await eventually(() => expect(live.ids()).toEqual(expect.arrayContaining(news)))
  const later = collect({ since })
  await eventually(() => expect(later.ids()).toEqual(expect.arrayContaining(news)))
})

test('an index is up to date again after a restored range reaches the same number of changes', async () => {
  needs('private server')
  const name = 'indexed'
  const { couch, indexes, fresh, report } = startIndexes({ url: server!.url, partition: onlyBeginningWith(name) })
  for (const channels of ['batch_channels', 'incremental_channels']) await configure(couch, 'ken', channels, '0')
  const [db] = await make({ couch }, name)
  await db!.put({ _id: '_design/one', views: { one: { map } } })
  const changes = async () => changesAt((await db!.info()).update_seq)
  const isFresh = () =>
    eventually(async () => {
      expect(fresh(name)).toEqual([true])
      const request = { db: name, path: '_design/one/_view/one', query: { update: false, limit: 0 } }
      const { total_rows } = await answerOf<{ total_rows: number }>(couch, request)
      expect(total_rows).toBe((await db!.info()).doc_count - 1)
    })
  const copy = await server!.copy()
  await put(db!, 'lost', 40)
  report(name)
  await isFresh()
  const [other] = await make({ couch }, 'indexed-other')
  await other!.put({ _id: '_design/one', views: { one: { map } } })
  await eventually(() => {
    indexes.change(kenSettings)
    expect(fresh('indexed-other'), 'the sweep has read all databases').toEqual([true])
  })
  const before = await changes()
  await server!.restart(only(copy, [name], LAST_RANGE))
  await put(db!, 'after', before - (await changes()))
  expect(await changes()).toBe(before)
  indexes.change(kenSettings) // lists all databases
  await isFresh()
})
