/**
 * `docker compose up` on a real engine: it builds the image, runs CouchDB, a mail catcher and two sidecars, and a
 * device registers.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { linkIn, newDevice, typeCode } from '../acceptance/registration.ts'
import { answerOf } from '../support/answers.ts'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { skipFor } from '../support/features.ts'
import { read } from './files.ts'
import { notInProduction, production } from './packages.ts'
import { findMissingImage, startStack, type Stack } from './stack.ts'

const BUILD_MS = 20 * 60_000
const password = read('secrets.example/couchdb_password').trim()
let stack: Stack
let missing: string | undefined

beforeAll(async () => {
  if (!inject('compose')) return
  missing = await findMissingImage()
  if (missing === undefined) stack = await startStack()
}, BUILD_MS)

afterAll(() => (stack as Stack | undefined)?.close(), 60_000)

function needsStack() {
  needs('docker compose')
  if (missing !== undefined) skipFor(`the image ${missing} is not stored on this machine and cannot be pulled`)
}

const openCouch = async () => {
  const { host } = new URL(await stack.urlOf('couchdb', 5984))
  return createTestCouch({ url: `http://admin:${password}@${host}` })
}

/** Registers a device on the confirm page of a sidecar. Resolves with the credentials that the page shows. */
async function register(sidecar: string) {
  const control = (await openCouch()).db('control')
  const device = newDevice()
  await control.put(device)
  const mailpit = `${await stack.urlOf('mail', 8025)}/api/v1`
  const link = await eventually(async () => {
    const query = encodeURIComponent(`to:"${device.owner}"`)
    const found = (await (await fetch(`${mailpit}/search?query=${query}`)).json()) as { messages: { ID: string }[] }
    expect(found.messages).toHaveLength(1)
    const mail = (await (await fetch(`${mailpit}/message/${found.messages[0]!.ID}`)).json()) as { Text: string }
    return linkIn(mail.Text, sidecar)
  })
  const { body } = await typeCode(link)
  expect(await control.get(device._id)).toMatchObject({ state: 'active', user: body.user })
  return body
}

test('one command sets up CouchDB, all services become healthy, and the sidecars see each other', async () => {
  needsStack()
  await Promise.all(['couchdb', 'sidecar-1', 'sidecar-2'].map((service) => stack.untilHealthy(service)))
  for (const name of ['sidecar-1', 'sidecar-2']) {
    const url = await stack.urlOf(name, 5985)
    await eventually(async () => expect((await fetch(`${url}/_up`)).status).toBe(200))
  }
  const couch = await openCouch()
  const databases = await answerOf<string[]>(couch, { path: '_all_dbs' })
  expect(databases).toEqual(expect.arrayContaining(['_replicator', '_users', 'control']))
  const workers = await couch.db('control').getMany(['sidecar-1', 'sidecar-2'].map((name) => `worker:sidecar:${name}`))
  expect(workers).toHaveLength(2)
})

test.each(['sidecar-1', 'sidecar-2'])('a device registers on the page of %s and logs in', async (service) => {
  needsStack()
  const { user, password } = await register(await stack.urlOf(service, 5985))
  const url = Object.assign(new URL(await stack.urlOf('couchdb', 5984)), { username: user, password })
  const session = await createTestCouch({ url: url.href.replace(/\/$/, '') }).request({ path: '_session' })
  expect(session).toMatchObject({ userCtx: { name: user } })
})

test('a sidecar runs without root, without capabilities, and can write only temporary files', async () => {
  needsStack()
  const status = (await stack.evaluate('sidecar-1', `fs.readFileSync('/proc/self/status', 'utf8')`)) as string
  expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m)
  expect(status).toMatch(/^CapEff:\t0+$/m)
  expect(status).toMatch(/^NoNewPrivs:\t1$/m)
  const writable = `['/', '/app', '/app/dist', '/home/node', '/usr/local/bin', os.tmpdir()].filter((path) => {
    try { fs.writeFileSync(path + '/x', ''); fs.rmSync(path + '/x'); return true } catch { return false }
  })`
  expect(await stack.evaluate('sidecar-1', writable)).toEqual(['/dev/shm'])
})

test('secrets are files; they are not in the container settings or the process environment', async () => {
  needsStack()
  expect(JSON.stringify(await stack.inspect('sidecar-1'))).not.toContain(password)
  expect(JSON.stringify(await stack.evaluate('sidecar-1', 'process.env'))).not.toContain(password)
})

test('the image contains no embedded and no development package', async () => {
  needsStack()
  const names = `fs.readdirSync('node_modules').flatMap((name) => name.startsWith('@')
    ? fs.readdirSync('node_modules/' + name).map((one) => name + '/' + one)
    : name.startsWith('.') ? [] : [name])`
  const installed = (await stack.evaluate('sidecar-1', names)) as string[]
  expect(installed.filter((name) => !production.has(name))).toEqual([])
  expect(installed.filter((name) => notInProduction.includes(name))).toEqual([])
  const files = await stack.evaluate('sidecar-1', `fs.readdirSync('/app').sort()`)
  expect(files).toEqual(['LICENSE', 'dist', 'node_modules', 'package.json', 'pages'])
})

test('the image contains the command couchdb-sidecar', async () => {
  needsStack()
  expect(await stack.compose('exec', '-T', 'sidecar-1', 'couchdb-sidecar', 'status')).toMatch(/^control$/m)
})

test('one sidecar keeps working while the other is stopped', async () => {
  needsStack()
  await stack.compose('stop', 'sidecar-1')
  expect((await stack.inspect('sidecar-1')).State.ExitCode).toBe(0)
  await register(await stack.urlOf('sidecar-2', 5985))
})

test('mounted handlers run, and a sidecar as process 1 drains them at a stop', async () => {
  needsStack()
  const folder = await mkdtemp(join(tmpdir(), 'couchdb-sidecar-handlers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'slow.ts'), SLOW)
  await chmod(folder, 0o755)
  const environment = { SIDECAR_HANDLERS: '/handlers/slow.ts', SIDECAR_DATABASES: 'orders' }
  await stack.change({ 'sidecar-2': { environment, volumes: [`${folder}:/handlers:ro`], init: false } })
  const orders = (await openCouch()).db('orders')
  await orders.create()
  await orders.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await orders.get('o')).toHaveProperty('docstate.claim'))
  expect(await stack.evaluate('sidecar-2', `fs.readFileSync('/proc/1/cmdline', 'utf8')`)).toMatch(/^node\0/)
  await stack.compose('stop', 'sidecar-2')
  expect(await orders.get('o')).toMatchObject({ state: 'shipped' })
  expect((await stack.inspect('sidecar-2')).State).toMatchObject({ ExitCode: 0, OOMKilled: false })
})

const SLOW = `
import { setTimeout } from 'node:timers/promises'
import { defineHandlers } from 'couchdb-sidecar'
import { answerOf } from '../support/answers.ts'
interface Order { state: string }
export default defineHandlers((control) => {
  control.unsafe('order', 'paid', async (order: Order) => {
    await setTimeout(3000)
    return { ...order, state: 'shipped' }
  })
})
`
