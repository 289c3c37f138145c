import { expect, test } from 'vitest'
import { freeDisk } from '../../../sidecar/indexes/disk.ts'
import { systemClock } from '../../../sidecar/core/clock.ts'
import { createTestCouch, deleteDb, needs } from '../../support/couchdb.ts'
import { skipFor } from '../../support/features.ts'
import { pass, refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { errorOf } from '../app.ts'
import { deployShop, openShop, shop } from './rig.ts'

const isInfo =
  (id: string) =>
  ({ path }: SeenRequest) =>
    decodeURIComponent(path).endsWith(`/_design/${id}/_info`)

const info = (view_index: Record<string, unknown>) =>
  refuse(200, { view_index: { updates_pending: { total: 0 }, ...view_index } } as unknown as {
    error: string
    reason: string
  })

test('an index that CouchDB cannot build is reported with the reason, and nothing changes', async () => {
  needs('index lag')
  const { couch, db, rows, left } = await openShop()
  const { _rev } = await db.get('_design/app')
  const files = { ...shop(2), 'app/language.json': '"klingon"' }
  const error = await errorOf(deployShop(couch, db.name, files))
  expect(error.code).toBe('index_failed')
  expect(error.message).toContain(`${db.name}/_design/app: CouchDB cannot build its index`)
  expect(error.message).toContain('klingon')
  expect(await left()).toEqual([])
  expect(await db.get('_design/app')).toMatchObject({ _rev })
  expect(await rows()).toBe(1)
})

test('without space for a second index, deploy reports the needed space and writes nothing', async () => {
  needs('index lag')
  const { db } = await openShop()
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  if (!(await freeDisk(couch))) skipFor('the disk of the server is not to be seen from here')
  const huge = info({ update_seq: 1, signature: 's', sizes: { file: 4e18 } })
  proxy.plan((request) => (isInfo('app')(request) ? huge : undefined))
  const error = await errorOf(deployShop(couch, db.name, shop(2)))
  expect(error.code).toBe('no_space')
  expect(error.message).toMatch(/may need 8000000\.0 TB, but [\d.]+ [GMT]B are free/)
  expect(proxy.requests.filter(({ method }) => method !== 'GET')).toEqual([])

  proxy.plan((request) => {
    const isSwapped = proxy.requests.some(({ path, method }) => method === 'PUT' && path.endsWith('/_design/app'))
    return isInfo('app')(request) && !isSwapped ? huge : pass
  })
  await deployShop(couch, db.name, shop(2), { checkDisk: false })
  expect(await db.get('_design/app')).toMatchObject({ rows: 2 })
})

test('deploy fails if the index after the swap is not the one it built', async () => {
  needs('index lag')
  const { couch, db, left } = await openShop()
  const proxy = await startFaultyProxy()
  const clock = { ...systemClock, sleep: () => new Promise<void>(setImmediate) }
  proxy.plan((request) => (isInfo('app')(request) ? info({ signature: 'another' }) : undefined))
  const error = await errorOf(deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2), { clock }))
  expect(error.code).toBe('not_verified')
  expect(error.message).toContain('got another with 0 changes missing')
  expect(await left()).not.toEqual([])
  await deployShop(couch, db.name, shop(2))
  expect(await left()).toEqual([])
})

test('a database that is deleted while its index is built is reported', async () => {
  needs('index lag')
  const { db } = await openShop()
  const proxy = await startFaultyProxy()
  proxy.next(
    async (exchange) => {
      await deleteDb(db.name)
      await pass(exchange)
    },
    ({ query }) => query.get('update') === 'lazy',
  )
  const error = await errorOf(deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2)))
  expect(error).toMatchObject({ code: 'no_database', message: `${db.name} was deleted in the meantime` })
})
