import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { deployDdocs } from '../../sidecar/deploy/deploy.ts'
import { createUser, openToAll } from '../ddocs/users.ts'
import { createTestCouch, deleteDb, freshDb, uniqueName } from '../support/couchdb.ts'
import { cutAfterUpstream, refuse, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { app, deploy, errorOf } from './app.ts'
import { ddocFolder } from './folder.ts'

test('a broken function or a missing database stops the deploy before any write', async () => {
  const db = await freshDb('deploy')
  const couch = createTestCouch()
  const templates = [{ folder: ddocFolder(app(1)) }]
  const good = { database: db.name, templates }
  const bad = { folder: ddocFolder({ 'b/filters/f.js': 'export default () => console.log(1)' }) }
  const broken = { database: db.name, templates: [bad] }
  expect((await errorOf(deployDdocs({ couch, deployments: [good, broken] }))).code).toBe('ddocs_broken')
  const missing = { database: uniqueName('absent'), templates }
  expect((await errorOf(deployDdocs({ couch, deployments: [good, missing] }))).code).toBe('no_database')
  expect(await db.find('_design/app')).toBeUndefined()
})

test('two folders may not have a design document with the same name', async () => {
  const db = await freshDb('deploy')
  const folders = [ddocFolder(app(1)), ddocFolder(app(2))]
  const deployments = [{ database: db.name, templates: folders.map((folder) => ({ folder })) }]
  const error = await errorOf(deployDdocs({ couch: createTestCouch(), deployments }))
  expect(error.code).toBe('ddocs_broken')
  for (const part of ['_design/app', ...folders, 'rename one of them']) expect(error.message).toContain(part)
  expect(await db.find('_design/app')).toBeUndefined()
})

test('an unreachable server is reported with its address and without its password', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const couch = createTestCouch({ url: `http://admin:s3cret@127.0.0.1:${port}` })
  const error = await errorOf(deploy(couch, 'any', ddocFolder(app(1))))
  expect(error.code).toBe('server_unreachable')
  expect(error.message).toContain(`http://127.0.0.1:${port}`)
  expect(error.message).not.toContain('s3cret')
})

test('a user who is no admin gets an error, and nothing is written', async () => {
  const db = await freshDb('deploy')
  await openToAll(createTestCouch(), db.name)
  const { couch } = await createUser()
  const error = await errorOf(deploy(couch, db.name, ddocFolder(app(1))))
  expect(error.code).toBe('not_admin')
  expect(error.message).toContain('admin')
  expect(await db.find('_design/app')).toBeUndefined()
})

test('a wrong password is reported without the password', async () => {
  const db = await freshDb('deploy')
  const { couch } = await createUser()
  const url = new URL(couch.url)
  url.username = uniqueName('unknown') // CouchDB locks out a name after five wrong passwords
  url.password = 'wr0ng'
  const error = await errorOf(deploy(createTestCouch({ url: url.href }), db.name, ddocFolder(app(1))))
  expect(error.code).toBe('not_admin')
  expect(error.message).not.toContain('wr0ng')
})

describe('an interrupted deploy', () => {
  const files = { 'a/a.json': '1', 'b/b.json': '2', 'c/c.json': '3' }
  const writes =
    (id: string) =>
    ({ method, path }: SeenRequest) =>
      method === 'PUT' && path.endsWith(id)

  test('a failed deploy lists what it wrote, finishes the other databases, and is completed by the next deploy', async () => {
    const [one, two, three] = [await freshDb('deploy'), await freshDb('deploy'), await freshDb('deploy')]
    const proxy = await startFaultyProxy()
    const couch = createTestCouch({ url: proxy.url })
    const templates = [{ folder: ddocFolder(files) }]
    const deployments = [one, two, three].map(({ name }) => ({ database: name, templates }))
    proxy.plan((request) => (writes(`${two.name}/_design/b`)(request) ? refuse(400) : undefined))
    const error = await errorOf(deployDdocs({ couch, deployments }))
    expect(error.code).toBe('server_refused')
    expect(error.faults.slice(1)).toEqual([
      `written before that: ${two.name}/_design/a`,
      `not written: ${two.name}/_design/b, ${two.name}/_design/c`,
      'run the deploy again for the rest',
    ])
    expect(error.reports.map(({ ddocs, failure }) => [ddocs.length, failure?.code])).toEqual([
      [3, undefined],
      [1, 'server_refused'],
      [3, undefined],
    ])

    proxy.plan(() => undefined)
    const report = await deployDdocs({ couch, deployments })
    expect(report.databases.flatMap(({ ddocs }) => ddocs.map(({ kind }) => kind))).toEqual([
      ...['unchanged', 'unchanged', 'unchanged'],
      ...['unchanged', 'created', 'created'],
      ...['unchanged', 'unchanged', 'unchanged'],
    ])
  })

  test('a deploy whose answer is lost checks whether the write arrived', async () => {
    const db = await freshDb('deploy')
    const proxy = await startFaultyProxy()
    const couch = createTestCouch({ url: proxy.url })
    proxy.next(cutAfterUpstream, writes('_design/b'))
    const error = await errorOf(deploy(couch, db.name, ddocFolder(files)))
    expect(error.code).toBe('server_unreachable')
    expect(error.message).toContain(`written before that: ${db.name}/_design/a, ${db.name}/_design/b\n`)
    expect(error.message).toContain(`not written: ${db.name}/_design/c`)
  })

  test('a deploy reports an unknown write, and a new database without design documents', async () => {
    const db = await freshDb('deploy')
    const proxy = await startFaultyProxy()
    const couch = createTestCouch({ url: proxy.url })
    proxy.next(() => proxy.down(), writes('_design/a'))
    const lost = await errorOf(deploy(couch, db.name, ddocFolder(files)))
    expect(lost.faults.slice(1, 4)).toEqual([
      'nothing was written before that',
      `unknown whether it was written: ${db.name}/_design/a`,
      `not written: ${db.name}/_design/b, ${db.name}/_design/c`,
    ])

    await proxy.up()
    const name = uniqueName('deploy')
    onTestFinished(() => deleteDb(name))
    proxy.next(refuse(500), writes('_design/a'))
    const made = await errorOf(deploy(couch, name, ddocFolder(files), { createDatabases: true }))
    expect(made.message).toContain(`written before that: the database ${name}\n`)
  })

  test('an aborted deploy lists written and unwritten documents', async () => {
    const db = await freshDb('deploy')
    const proxy = await startFaultyProxy()
    const stopping = new AbortController()
    proxy.next(() => stopping.abort(new Error('stopped by hand')), writes('_design/b'))
    const { signal } = stopping
    const error = await errorOf(deploy(createTestCouch({ url: proxy.url }), db.name, ddocFolder(files), { signal }))
    expect(error).toMatchObject({ code: 'stopped', cause: { message: 'stopped by hand' } })
    expect(error.faults.slice(0, 2)).toEqual(['stopped by hand', `written before that: ${db.name}/_design/a`])
  })
})

test('a function that the server refuses is reported', async () => {
  const db = await freshDb('deploy')
  const proxy = await startFaultyProxy()
  const said = { error: 'compilation_error', reason: 'Compilation of the map function in the view failed' }
  proxy.plan(({ method, path }) => (method === 'PUT' && path.includes('_design') ? refuse(400, said) : undefined))
  const error = await errorOf(deploy(createTestCouch({ url: proxy.url }), db.name, ddocFolder(app(1))))
  expect(error.code).toBe('server_refused')
  expect(error.message).toContain('Compilation of the map function')
})
