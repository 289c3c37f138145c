import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createAgain,
  createTestCouch,
  needs,
  startPrivateCouch,
  uniqueName,
  type PrivateCouch,
} from '../../support/couchdb.ts'
import { findCouchBinary } from '../../support/couchdb-binary.ts'
import { eventually } from '../../support/eventually.ts'
import { cutInLine, refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { settings, startGlobalChanges } from './rig.ts'

let server: PrivateCouch | undefined
beforeAll(async () => {
  if (findCouchBinary()) server = await startPrivateCouch()
})
afterAll(() => server?.stop())

async function start({ hasFeed = true } = {}) {
  needs('private server')
  const { url } = server!
  const couch = createTestCouch({ url })
  if (hasFeed) await createAgain(couch.db('_global_changes'))
  else await couch.request({ method: 'DELETE', db: '_global_changes' }).catch(() => undefined)
  const proxy = await startFaultyProxy(url)
  const rig = startGlobalChanges({ url, by: proxy.url })
  await rig.swept()
  return { ...rig, couch, proxy }
}

const isFeed = ({ path }: SeenRequest) => path === '/_db_updates'
const isAll = ({ path }: SeenRequest) => path === '/_all_dbs'
const follows = (requests: readonly SeenRequest[]) => eventually(() => expect(requests.filter(isFeed)).not.toEqual([]))

test('the sidecar follows the server’s feed and no feed of single databases', async () => {
  const { couch, proxy, seen } = await start()
  await follows(proxy.requests)
  const db = couch.db(uniqueName('orders'))
  await db.create()
  await db.put({ _id: 'a' })
  await seen(db.name, ['created', 'updated'])
  await couch.request({ method: 'DELETE', db: db.name })
  await seen(db.name, ['created', 'updated', 'deleted'])
  await seen('_dbs', ['updated']) // _all_dbs does not list this database
  expect(proxy.requests.filter(({ path }) => path.endsWith('/_changes'))).toEqual([])
})

test.each([
  ['is cut in a line', cutInLine(1)],
  ['is refused', refuse(500)],
])('a feed that %s loses no event', async (_, fault) => {
  const { couch, proxy, seen } = await start()
  await follows(proxy.requests)
  for (let round = 0; round < 3; round++) {
    proxy.next(fault, isFeed)
    proxy.dropConnections()
    const db = couch.db(uniqueName('orders'))
    await db.create()
    await db.put({ _id: 'a' })
    await seen(db.name, ['created', 'updated'])
  }
})

test('without _global_changes, events come from other sources, and the feed is followed once it exists', async () => {
  const { couch, proxy, seen } = await start({ hasFeed: false })
  const [before, after] = [couch.db(uniqueName('before')), couch.db(uniqueName('after'))]
  await before.create()
  await before.put({ _id: 'a' })
  await seen(before.name, ['created', 'updated'])
  expect(proxy.requests.filter(isFeed)).toEqual([])
  await createAgain(couch.db('_global_changes'))
  await eventually(() => expect(proxy.requests.filter(isFeed)).toHaveLength(1))
  await after.create()
  await before.put({ _id: 'b' })
  await seen(after.name, ['created'])
  await couch.request({ method: 'DELETE', db: before.name })
  await seen(before.name, ['created', 'updated', 'deleted'])
})

test('a feed created while the feature is off is followed once it is on', async () => {
  const { couch, proxy, changes, seen } = await start({ hasFeed: false })
  changes.change({ ...settings, update_db: false })
  await createAgain(couch.db('_global_changes'))
  changes.change(settings)
  await follows(proxy.requests)
  const requests = proxy.requests.length
  const db = couch.db(uniqueName('orders'))
  await db.create()
  await db.put({ _id: 'a' })
  await seen(db.name, ['created', 'updated'])
  expect(proxy.requests.slice(requests).filter(({ path }) => path === `/${db.name}/_changes`)).toEqual([])
})

test('repeated reads of an idle server write nothing', async () => {
  const { couch, proxy, changes } = await start()
  await follows(proxy.requests)
  await eventually(() => couch.db('_users').get('_design/_auth')) // CouchDB writes it some seconds after its start
  let requested = 0
  const looks = async (count: number) => {
    for (let look = 0; look < count; look++) {
      const before = proxy.requests.filter(isAll).length
      changes.change({ ...settings, sweep_interval: 200 + ++requested }) // makes it list all databases now
      await eventually(() => expect(proxy.requests.filter(isAll).length).toBeGreaterThan(before))
    }
  }
  const written = () => changes.counts().written
  await eventually(async () => {
    const before = written()
    await looks(2)
    expect(written()).toBe(before) // earlier changes are written
  })
  const [before, requests] = [written(), proxy.requests.length]
  await looks(5)
  expect(written()).toBe(before)
  const wrote = proxy.requests.slice(requests).filter(({ method, path }) => method !== 'GET' && path !== '/_dbs_info')
  expect(wrote).toEqual([])
})

test('a server killed during a write loses no event', async () => {
  const { couch, proxy, seen } = await start()
  const dbs = Array.from({ length: 5 }, () => couch.db(uniqueName('orders')))
  for (const db of dbs) await db.create()
  for (const db of dbs) await seen(db.name, ['created'])
  const isWrite = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')
  const killed = new Promise<void>((resolve) => {
    proxy.next(async (exchange) => {
      await server!.kill()
      exchange.cut()
      resolve()
    }, isWrite)
  })
  for (const db of dbs) await db.put({ _id: 'a' })
  await killed
  await server!.restart()
  for (const db of dbs) await seen(db.name, ['created', 'updated'])
})
