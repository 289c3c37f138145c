import { expect, onTestFinished, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { deployDdocs } from '../../sidecar/deploy/deploy.ts'
import { createTestCouch, deleteDb, freshDb, uniqueName } from '../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { app, deploy, errorOf } from './app.ts'
import { ddocFolder } from './folder.ts'

test('deploy writes a design document once, and later only its changes', async () => {
  const db = await freshDb('deploy')
  const couch = createTestCouch()
  const first = await deploy(couch, db.name, ddocFolder(app(1)))
  expect(first.databases).toMatchObject([
    { database: db.name, result: 'there', ddocs: [{ kind: 'created', id: '_design/app' }] },
  ])
  const { _rev } = await db.get('_design/app')

  const second = await deploy(couch, db.name, ddocFolder(app(1)))
  expect(second.databases[0]!.ddocs).toEqual([{ kind: 'unchanged', id: '_design/app' }])
  expect((await db.get('_design/app'))._rev).toBe(_rev)

  const third = await deploy(couch, db.name, ddocFolder(app(2)))
  const [result] = third.databases[0]!.ddocs
  expect(result).toMatchObject({
    kind: 'updated',
    changes: [{ field: 'limit', before: 1, after: 2 }, { field: 'views.v.map' }],
  })
  await db.put({ _id: 'two', n: 2 })
  await db.put({ _id: 'three', n: 3 })
  expect((await viewOf(db, 'app', 'v', { reduce: false })).rows.map(({ id }) => id)).toEqual(['three'])
})

test('another order of keys, or unchanged attachments, cause no write', async () => {
  const db = await freshDb('deploy')
  const couch = createTestCouch()
  const folder = ddocFolder({
    ...app(1),
    'app/_attachments/index.html': '<p>hello</p>',
    'app/o.json': '{"b":{"d":1,"c":2},"a":1}',
  })
  await deploy(couch, db.name, folder)
  const { _id, ...fields } = await db.get('_design/app', { attachments: true })
  await db.put({ ...Object.fromEntries(Object.entries(fields).reverse()), o: { a: 1, b: { c: 2, d: 1 } }, _id })
  const report = await deploy(couch, db.name, folder)
  expect(report.databases[0]!.ddocs).toEqual([{ kind: 'unchanged', id: '_design/app' }])
})

test('a dry run shows the changes and writes nothing', async () => {
  const db = await freshDb('deploy')
  const couch = createTestCouch()
  const name = uniqueName('absent')
  const folder = ddocFolder(app(1))
  const plan = {
    dryRun: true,
    createDatabases: true,
    deployments: [
      { database: db.name, templates: [{ folder }] },
      { database: name, templates: [{ folder }] },
    ],
  }
  expect((await deployDdocs({ couch, ...plan })).databases).toMatchObject([
    { database: db.name, result: 'there', ddocs: [{ kind: 'would-create' }] },
    { database: name, result: 'would-create', ddocs: [{ kind: 'would-create' }] },
  ])
  expect(await db.find('_design/app')).toBeUndefined()
  await expect(couch.db(name).info()).rejects.toThrow('404')

  await deploy(couch, db.name, folder)
  const again = await deploy(couch, db.name, ddocFolder(app(2)), { dryRun: true })
  expect(again.databases[0]!.ddocs[0]).toMatchObject({ kind: 'would-update' })
  expect((await db.get('_design/app')).limit).toBe(1)
})

test('deploy creates a database only with the option for it', async () => {
  const couch = createTestCouch()
  const name = uniqueName('deploy')
  onTestFinished(() => deleteDb(name))
  const refused = await errorOf(deploy(couch, name, ddocFolder(app(1))))
  expect(refused.code).toBe('no_database')
  expect(refused.message).toContain(name)
  const report = await deploy(couch, name, ddocFolder(app(1)), { createDatabases: true })
  expect(report.databases[0]).toMatchObject({ result: 'created', ddocs: [{ kind: 'created' }] })
})

test('deploy compares again after a conflict with another writer', async () => {
  const db = await freshDb('deploy')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const isWrite = ({ method, path }: { method: string; path: string }) =>
    method === 'PUT' && path.endsWith('_design/app')
  const conflict = refuse(409, { error: 'conflict', reason: 'Document update conflict.' })

  proxy.next(async (exchange) => {
    await db.put({ _id: '_design/app', limit: 7 })
    await conflict(exchange)
  }, isWrite)
  const raced = await deploy(couch, db.name, ddocFolder(app(1)))
  expect(raced.databases[0]!.ddocs[0]).toMatchObject({ kind: 'updated' })
  expect((await db.get('_design/app')).limit).toBe(1)

  const more = ddocFolder({ ...app(1), 'app/limit.json': '2' })
  proxy.next(async (exchange) => {
    await deploy(createTestCouch(), db.name, more)
    await conflict(exchange)
  }, isWrite)
  const equal = await deploy(couch, db.name, more)
  expect(equal.databases[0]!.ddocs).toEqual([{ kind: 'unchanged', id: '_design/app' }])
})

test('the server’s engine selects the target, unless the option sets it', async () => {
  const db = await freshDb('deploy')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const answers = new Map<string, unknown>()
  proxy.plan(({ path }) => {
    const answer = answers.get(path)
    return answer === undefined ? undefined : refuse(200, answer as { error: string; reason: string })
  })
  answers.set('/', { couchdb: 'Welcome' })
  answers.set('/_node/_local', { name: 'couchdb@127.0.0.1' })
  answers.set('/_node/_local/_versions', { javascript_engine: { name: 'spidermonkey', version: '1.8.5' } })
  const folder = ddocFolder({ 'app/filters/f.ts': 'export default () => { const yes = true; return yes }' })

  expect((await errorOf(deploy(couch, db.name, folder))).message).toContain('Transforming const')
  const received = await deploy(couch, db.name, folder, { target: 'es2017' })
  expect(received).toMatchObject({ engine: 'spidermonkey 1.8.5', target: 'es2017' })

  answers.set('/_node/_local/_versions', { javascript_engine: { name: 'spidermonkey', version: '102' } })
  expect(await deploy(couch, db.name, folder)).toMatchObject({ engine: 'spidermonkey 102', target: 'es2017' })
})

test('an unknown engine gets ES2017, and a server without a node name gets no versions request', async () => {
  const db = await freshDb('deploy')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const folder = ddocFolder(app(1))
  proxy.next(refuse(403), ({ path }) => path === '/')
  expect(await deploy(couch, db.name, folder)).toMatchObject({ engine: 'unknown', target: 'es2017' })

  const nameless = { name: 'nonode@nohost' } as unknown as { error: string; reason: string }
  proxy.next(refuse(200, { error: '', reason: '' }), ({ path }) => path === '/')
  proxy.next(refuse(200, nameless), ({ path }) => path === '/_node/_local')
  expect(await deploy(couch, db.name, folder)).toMatchObject({ engine: 'unknown', target: 'es2017' })
  expect(proxy.requests.map(({ path }) => path)).not.toContain('/_node/_local/_versions')
})

test("deploy brings the sidecar's own design documents to a new database", async () => {
  const couch = createTestCouch()
  const [control, userdb] = [uniqueName('control'), uniqueName('userdb')]
  onTestFinished(async () => {
    await deleteDb(control)
    await deleteDb(userdb)
  })
  const machines = { order: { paid: { mode: 'safe', create: 'client' } } } as const
  const deployments = [
    { database: control, templates: [{ folder: ddocsFolder('control') }] },
    { database: userdb, templates: [{ folder: ddocsFolder('docstate'), machines }] },
  ]
  await deployDdocs({ couch, deployments, createDatabases: true })
  const report = await deployDdocs({ couch, deployments })
  expect(report.databases.map(({ ddocs }) => ddocs)).toEqual([
    [{ kind: 'unchanged', id: '_design/docstate' }],
    [{ kind: 'unchanged', id: '_design/docstate' }],
  ])
  expect((await couch.db(userdb).get('_design/docstate')).machines).toEqual(machines)
})
