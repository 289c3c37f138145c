import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { deployDdocs } from '../../sidecar/deploy/deploy.ts'
import { createUser, openToAll } from '../ddocs/users.ts'
import { createTestCouch, freshDb, uniqueName } from '../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { app, deploy, errorOf } from './app.ts'
import { ddocFolder } from './folder.ts'

test('writes nothing anywhere when one function is broken or one database is missing', async () => {
  const db = await freshDb('deploy')
  const couch = createTestCouch()
  const good = { database: db.name, folder: ddocFolder(app(1)) }
  const broken = { database: db.name, folder: ddocFolder({ 'b/filters/f.js': 'export default () => console.log(1)' }) }
  expect((await errorOf(deployDdocs({ couch, deployments: [good, broken] }))).code).toBe('ddocs_broken')
  const missing = { database: uniqueName('absent'), folder: good.folder }
  expect((await errorOf(deployDdocs({ couch, deployments: [good, missing] }))).code).toBe('no_database')
  expect(await db.find('_design/app')).toBeUndefined()
})

test('a server that is not there is told with its address and without its password', async () => {
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

test('somebody who is no admin is told so, and nothing is written', async () => {
  const db = await freshDb('deploy')
  await openToAll(createTestCouch(), db.name)
  const { couch } = await createUser()
  const error = await errorOf(deploy(couch, db.name, ddocFolder(app(1))))
  expect(error.code).toBe('not_admin')
  expect(error.message).toContain('admin')
  expect(await db.find('_design/app')).toBeUndefined()
})

test('a wrong password is told', async () => {
  const db = await freshDb('deploy')
  const { couch } = await createUser()
  const url = new URL(couch.url)
  url.username = 'admin'
  url.password = 'wr0ng'
  const error = await errorOf(deploy(createTestCouch({ url: url.href }), db.name, ddocFolder(app(1))))
  expect(error.code).toBe('not_admin')
  expect(error.message).not.toContain('wr0ng')
})

test('a write that fails in the middle is told with what was written before it, and another run does the rest', async () => {
  const [one, two] = [await freshDb('deploy'), await freshDb('deploy')]
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const folder = ddocFolder(app(1))
  const deployments = [one, two].map(({ name }) => ({ database: name, folder }))
  proxy.plan(({ method, path }) => (method === 'PUT' && path.includes(two.name) ? refuse(500) : undefined))
  const error = await errorOf(deployDdocs({ couch, deployments }))
  expect(error.code).toBe('server_refused')
  expect(error.message).toContain(`${one.name}/_design/app`)

  proxy.plan(() => undefined)
  const report = await deployDdocs({ couch, deployments })
  expect(report.databases.map(({ ddocs }) => ddocs[0]!.kind)).toEqual(['unchanged', 'created'])
})

test('a function that the server itself refuses is told', async () => {
  const db = await freshDb('deploy')
  const proxy = await startFaultyProxy()
  const said = { error: 'compilation_error', reason: 'Compilation of the map function in the view failed' }
  proxy.plan(({ method, path }) => (method === 'PUT' && path.includes('_design') ? refuse(400, said) : undefined))
  const error = await errorOf(deploy(createTestCouch({ url: proxy.url }), db.name, ddocFolder(app(1))))
  expect(error.code).toBe('server_refused')
  expect(error.message).toContain('Compilation of the map function')
})
