import { expect, test } from 'vitest'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import type { Progress } from '../../../sidecar/deploy/staging/surroundings.ts'
import { readViewIndex } from '../../../sidecar/indexes/view-index.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { pass, refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { ddocFolder } from '../folder.ts'
import { pollAllTheTime, deployShop, openShop, shop, turns } from './rig.ts'

test('the old index answers queries until the new one is complete, and no query waits', async () => {
  needs('index lag')
  const opened = await openShop(1000)
  const { couch, db } = opened
  const polling = pollAllTheTime(opened)
  const progress: Progress[] = []
  const began = performance.now()
  const report = await deployShop(couch, db.name, shop(2, 4), { onProgress: (seen) => progress.push(seen) })
  const tookMs = performance.now() - began
  expect(report.databases[0]!.ddocs).toMatchObject([{ kind: 'updated', id: '_design/app', staged: true }])
  await polling.stop()
  expect(turns(polling.answers)).toEqual([1, 2])
  expect(polling.answers.length).toBeGreaterThan(20)
  expect(polling.slowest).toBeLessThan(tookMs / 3) // two shards of 500 documents of 4 ms
  const done = progress.flatMap((seen) => (seen.kind === 'warming' ? [seen.done] : []))
  expect(done.filter((count) => count > 0 && count < 1000).length).toBeGreaterThan(0)
  expect(await opened.left()).toEqual([])
})

test('a staged copy has views only, without the guard or automatic updates', async () => {
  needs('index lag')
  const { couch, db } = await openShop()
  const proxy = await startFaultyProxy()
  const files = { ...shop(2), 'app/validate_doc_update.js': 'export default () => { throw { forbidden: "no" } }' }
  const own = { 'app/language.json': '"javascript"', 'app/options.json': '{"local_seq":true}' }
  await deployShop(createTestCouch({ url: proxy.url }), db.name, { ...files, ...own })
  const put = proxy.requests.find(({ method, path }) => method === 'PUT' && path.includes('staged'))
  const copy = JSON.parse(put!.body) as Record<string, unknown>
  expect(Object.keys(copy).sort()).toEqual(['_id', 'autoupdate', 'language', 'options', 'views'])
  expect(copy).toMatchObject({ autoupdate: false, language: 'javascript', options: { local_seq: true } })
  expect((await couch.db(db.name).get('_design/app')).validate_doc_update).toBeDefined()
})

test('views keep their order in the database, because another order would need another index', async () => {
  needs('index lag')
  const { couch, db } = await openShop()
  const map = shop(1)['app/views/v/map.js']!
  const reduced = { 'two/views/a/map.js': map, 'two/views/z/map.js': map, 'two/views/z/reduce.json': '"_count"' }
  const files = { ...shop(1), ...reduced, 'two/views/a/reduce.json': '"_approx_count_distinct"' }
  await deployShop(couch, db.name, files)
  const { views, ...rest } = await db.get<StoredDoc & { views: { a: unknown; z: unknown } }>('_design/two')
  await db.put({ ...rest, views: { z: views.z, a: views.a } })
  const { signature } = await readViewIndex(couch, db.name, '_design/two')
  expect((await deployShop(couch, db.name, files)).databases[0]!.ddocs.map(({ kind }) => kind)).not.toContain('updated')
  await deployShop(couch, db.name, { ...files, 'two/rows.json': '1' })
  const index = await readViewIndex(couch, db.name, '_design/two')
  expect(index.signature).toBe(signature)
  expect(Object.keys((await db.get<StoredDoc & { views: object }>('_design/two')).views)).toEqual(['z', 'a'])
})

test('many writes during the swap cause no fault, also without queries', async () => {
  needs('index lag')
  const { db, left } = await openShop()
  const proxy = await startFaultyProxy()
  const isSwap = ({ method, path }: SeenRequest) => method === 'PUT' && path.endsWith('/_design/app')
  proxy.next(async (exchange) => {
    await db.bulk(Array.from({ length: 500 }, (_, n) => JSON.stringify({ _id: `late-${n}`, n })))
    await pass(exchange)
  }, isSwap)
  const files = { ...shop(2), 'app/autoupdate.json': 'false' }
  await deployShop(createTestCouch({ url: proxy.url }), db.name, files)
  expect(await left()).toEqual([])
})

test('the design documents of one database change together, when all their indexes are built', async () => {
  needs('index lag')
  const { couch, db, left } = await openShop()
  const other = (rows: number) =>
    Object.fromEntries(Object.entries(shop(rows)).map(([path, text]) => [path.replace('app', 'other'), text]))
  const files = (rows: number) => ({ ...shop(rows), ...other(rows), 'plain/rows.json': String(rows) })
  await deployShop(couch, db.name, files(1))
  const proxy = await startFaultyProxy()
  await deployShop(createTestCouch({ url: proxy.url }), db.name, files(2))
  const writes = proxy.requests.flatMap(({ method, path }) =>
    method === 'PUT' && !path.includes('_local') ? [decodeURIComponent(path.slice(path.indexOf('_design/') + 8))] : [],
  )
  expect(writes).toEqual([
    ...['sidecar:staged:app', 'sidecar:previous:app'],
    ...['sidecar:staged:other', 'sidecar:previous:other'],
    ...['app', 'other', 'plain'],
  ])
  expect(await left()).toEqual([])
})

test.each([
  ['only other functions', { ...shop(1), 'app/filters/f.js': 'export default () => true' }, 'updated'],
  ['a new design document', { ...shop(1), 'app2/views/v/map.js': 'export default () => emit(1)' }, 'created'],
  [
    'first views of a design document',
    { ...shop(1), 'plain/views/v/map.js': 'export default () => emit(1)' },
    'updated',
  ],
  ['the removal of views', { 'app/rows.json': '0' }, 'updated'],
])('a deploy writes at once: %s', async (_, files, kind) => {
  const { couch, db } = await openShop()
  await db.put({ _id: '_design/plain', rows: 1 })
  const proxy = await startFaultyProxy()
  const report = await deployShop(createTestCouch({ url: proxy.url }), db.name, files)
  const changed = report.databases[0]!.ddocs.filter((result) => result.kind !== 'unchanged')
  expect(changed).toMatchObject([{ kind }])
  expect(changed[0]).not.toHaveProperty('staged')
  const writes = proxy.requests.filter(({ method }) => method !== 'GET')
  expect(writes.map(({ method }) => method)).toEqual(['PUT'])
  expect((await deployShop(couch, db.name, files)).databases[0]!.ddocs.map(({ kind }) => kind)).not.toContain('updated')
})

test('a deploy without changes writes nothing', async () => {
  const { db } = await openShop()
  const proxy = await startFaultyProxy()
  await deployShop(createTestCouch({ url: proxy.url }), db.name, shop(1))
  expect(proxy.requests.filter(({ method }) => method !== 'GET')).toEqual([])
})

test('a deploy writes at once if the server does not report the progress of an index', async () => {
  const { couch, db } = await openShop()
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (path.endsWith('/_info') ? refuse(200, { error: '', reason: '' }) : undefined))
  const report = await deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2))
  expect(report.databases[0]!.ddocs).toEqual([expect.not.objectContaining({ staged: true })])
  expect(await couch.db(db.name).get('_design/app')).toMatchObject({ rows: 2 })
})

test('a dry run shows which index would be built first, and writes nothing', async () => {
  needs('index lag')
  const { couch, db } = await openShop()
  const folder = ddocFolder(shop(2))
  const report = await deployShop(couch, db.name, shop(2), {
    dryRun: true,
    deployments: [{ database: db.name, templates: [{ folder }] }],
  })
  expect(report.databases[0]!.ddocs).toMatchObject([{ kind: 'would-update', staged: true }])
  expect(await db.get('_design/app')).toMatchObject({ rows: 1 })
})

test.each([
  ['the build of an index', ({ query }: SeenRequest) => query.get('update') === 'lazy'],
  ['a check of slower shard copies', ({ path }: SeenRequest) => path.endsWith('/_active_tasks')],
])('deploy waits while the server is unavailable during %s', async (_, isIt) => {
  needs('index lag')
  const opened = await openShop()
  const proxy = await startFaultyProxy()
  const seen: Progress[] = []
  proxy.next(async () => {
    await proxy.down()
    setTimeout(() => void proxy.up(), 500)
  }, isIt)
  const couch = createTestCouch({ url: proxy.url })
  await deployShop(couch, opened.db.name, shop(2), {
    onProgress: (progress) => seen.push(progress),
    deadAfterMs: 10_000,
  })
  expect(seen.map(({ kind }) => kind)).toContain('trouble')
  expect(await opened.rows()).toBe(2)
})

test('a query that waits for the old index during the swap gets its answer', async () => {
  needs('index lag')
  const opened = await openShop(50)
  const { couch, db } = opened
  await deployShop(couch, db.name, shop(1, 10))
  const proxy = await startFaultyProxy()
  let waiting: Promise<number> | undefined
  const isSwap = ({ method, path }: SeenRequest) => method === 'PUT' && path.endsWith('/_design/app')
  proxy.next(async (exchange) => {
    await db.bulk(Array.from({ length: 50 }, (_, n) => JSON.stringify({ _id: `late-${n}`, n })))
    waiting = opened.rows()
    waiting.catch(() => undefined)
    await eventually(async () =>
      expect(await readViewIndex(couch, db.name, '_design/app')).toMatchObject({ isRunning: true }),
    )
    await pass(exchange)
  }, isSwap)
  await deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2))
  expect(await waiting).toBe(2) // twice the documents, one row each
})
