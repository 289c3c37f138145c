import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { pass, refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { fill, map, onlyBeginningWith, putDdoc, settings, startIndexes, startQuietServer, write } from './rig.ts'

/**
 * No full-text server runs in these tests: a stub in front of the real CouchDB gives its answers. The ken of that
 * CouchDB is off, because it would call Clouseau, and a CouchDB without a node name crashes then.
 */
async function startWithFullText() {
  needs('private server')
  const server = await startQuietServer()
  onTestFinished(() => server.stop())
  return { server, proxy: await startFaultyProxy(server.url) }
}

test('full-text indexes are built one by one where the server has them, and their lag is read', async () => {
  const { server, proxy } = await startWithFullText()
  const welcome = { couchdb: 'Welcome', version: '3.5.0', features: ['search', 'nouveau'] }
  const reached = new Map<string, number>()
  let seq = 0
  proxy.plan(({ path }) => {
    if (path === '/') return refuse(200, welcome as never)
    const [, what, name] = /_design\/texts\/(_search|_nouveau|_search_info|_nouveau_info)\/(\w+)/.exec(path) ?? []
    if (what === undefined || name === undefined) return undefined
    if (!what.endsWith('_info')) {
      reached.set(name, seq)
      return refuse(200, { total_rows: 0, rows: [] } as never)
    }
    const field = what === '_search_info' ? 'pending_seq' : 'update_seq'
    return refuse(200, { name: `_design/texts/${name}`, search_index: { [field]: reached.get(name) ?? 0 } } as never)
  })
  const couch = createTestCouch({ url: server.url })
  const db = await fill(couch, 0, {}, 'text')
  const index = { index: 'function (doc) { index("default", doc.text) }' }
  await putDdoc(couch, db.name, 'texts', { indexes: { one: index, two: index }, nouveau: { three: index } })
  await putDdoc(couch, db.name, 'off', { autoupdate: { indexes: false }, indexes: { four: index } })
  await write(couch, db.name, 3)
  seq = 5
  const { report, rows, fresh, indexes } = startIndexes({
    url: server.url,
    by: proxy.url,
    partition: onlyBeginningWith('text'),
  })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true, true, true]))
  expect(
    rows(db.name)
      .map(({ kind, index }) => `${kind} ${index}`)
      .sort(),
  ).toEqual(['nouveau three', 'search one', 'search two'])
  expect(reached).toEqual(new Map([...reached.keys()].map((name) => [name, 5])))
  expect(indexes.counts().built).toBe(3)
})

test('the indexer detects the end of full-text search and a node that joins, also during builds', async () => {
  const { server, proxy } = await startWithFullText()
  const welcome = (features: string[]) => refuse(200, { couchdb: 'Welcome', version: '3.5.0', features } as never)
  const search = refuse(200, { search_index: { pending_seq: 1e9 }, rows: [] } as never)
  let root = welcome(['search'])
  let allDocs = pass
  proxy.plan(({ path }) => {
    if (path === '/') return root
    if (path.includes('_all_docs')) return allDocs
    return path.includes('_search') ? search : undefined
  })
  const partition = onlyBeginningWith('lost')
  const { report, rows, fresh, couch, indexes } = startIndexes({ url: server.url, by: proxy.url, partition })
  const db = await fill(couch, 0, {}, 'lost')
  await putDdoc(couch, db.name, 'both', { views: { one: { map } }, indexes: { two: { index: 'function () {}' } } })
  report(db.name)
  await eventually(() => expect(fresh(db.name)).toEqual([true, true]))
  await write(couch, db.name, 1)
  let goOn = () => {}
  const held = new Promise<void>((resolve) => (goOn = resolve))
  const requested = (what: string) => proxy.requests.filter(({ path }) => path.includes(what)).length
  const reads = requested(`${db.name}/_all_docs`)
  allDocs = (exchange) => held.then(() => pass(exchange))
  report(db.name)
  await eventually(() => expect(requested(`${db.name}/_all_docs`)).toBeGreaterThan(reads))
  root = welcome([])
  const before = requested('_dbs_info')
  indexes.change(settings) // starts a sweep at once
  await eventually(() => expect(requested('_dbs_info')).toBeGreaterThan(before))
  goOn()
  await eventually(() => expect(rows(db.name)).toMatchObject([{ kind: 'view', lag_seconds: 0 }]))
  const nodes = ['couchdb@one', 'couchdb@two']
  proxy.plan(({ path }) => (path === '/_membership' ? refuse(200, { cluster_nodes: nodes } as never) : undefined))
  indexes.change(settings)
  await eventually(() => {
    report(db.name)
    expect(requested(`/${db.name}/_shards/`)).toBeGreaterThan(0) // copies are read one by one
  })
})
