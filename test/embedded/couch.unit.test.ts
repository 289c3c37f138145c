import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pino from 'pino'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { startCouch as startEmbedded, type EmbeddedCouchOptions } from '../../embedded/src/couch.ts'
import { createCouch } from '../../sidecar/couch/client.ts'
import type { CouchError } from '../../sidecar/couch/couch-errors.ts'
import build, { root } from '../acceptance/build.ts'
import { answerOf } from '../support/answers.ts'
import { eventually } from '../support/eventually.ts'
import { uniqueName } from '../support/couchdb.ts'

const log = pino({ level: 'silent' })

async function startCouch(options: Partial<EmbeddedCouchOptions> = {}) {
  const server = await startEmbedded({ log, port: 16_984, ...options })
  const couch = createCouch({ url: server.url })
  onTestFinished(async () => {
    await couch.close()
    await server.close()
  })
  return { couch, url: server.url, origin: new URL(server.url).origin }
}

beforeAll(build)

const json = { 'content-type': 'application/json' }

test('the server has one admin with a random password, and requests without credentials are anonymous', async () => {
  const { couch, origin } = await startCouch()
  expect(await couch.request({ path: '_session' })).toMatchObject({ userCtx: { name: 'admin', roles: ['_admin'] } })
  expect(await (await fetch(`${origin}/_session`)).json()).toMatchObject({ userCtx: { name: null, roles: [] } })
})

test('a user that the admin creates can log in and is not an admin', async () => {
  const { couch, origin } = await startCouch()
  const user = { _id: 'org.couchdb.user:ann', type: 'user', name: 'ann', roles: ['reader'], password: 'secret' }
  await couch.db('_users').put(user)
  const session = await fetch(`${origin}/_session`, { headers: { authorization: `Basic ${btoa('ann:secret')}` } })
  expect(await session.json()).toMatchObject({ userCtx: { name: 'ann', roles: ['reader'] } })
})

test('anonymous clients can neither create nor delete databases, and the server survives the attempt', async () => {
  const { couch, origin } = await startCouch()
  await couch.db('kept').create()
  expect((await fetch(`${origin}/mine`, { method: 'PUT' })).status).toBe(401)
  expect((await fetch(`${origin}/kept`, { method: 'DELETE' })).status).toBe(401)
  expect(await couch.db('kept').info()).toMatchObject({ db_name: 'kept', doc_count: 0 })
})

test('a guarded database accepts a replicated successor of a document, and then a conflicting branch', async () => {
  const { couch } = await startCouch()
  const db = couch.db('guarded')
  await db.create()
  await db.put({ _id: '_design/guard', validate_doc_update: 'function () {}' })
  const rev = await db.put({ _id: 'a' })
  const replicate = (name: string, fields: object) => {
    const doc = { _id: 'a', _rev: `2-${name}`, _revisions: { start: 2, ids: [name, rev.slice(2)] }, ...fields }
    return couch.request({ method: 'POST', db: 'guarded', path: '_bulk_docs', body: { new_edits: false, docs: [doc] } })
  }
  await replicate('bb', { edited: 'elsewhere' })
  expect(await db.get('a')).toMatchObject({ _rev: '2-bb', edited: 'elsewhere' })
  await replicate('aa', { edited: 'at the same time' })
  expect(await db.leaves('a')).toHaveLength(2)
})

test('a written, changed or deleted validate_doc_update applies to the next write, in its database alone', async () => {
  const { couch } = await startCouch()
  const [db, other] = [couch.db('judged'), couch.db('free')]
  for (const made of [db, other]) await made.create()
  const write = (database = db) =>
    database.put({ _id: uniqueName('order') }).then(
      () => 'stored',
      (thrown: CouchError) => thrown.reason,
    )
  const guard = (reason: string) => `function () { throw({ forbidden: '${reason}' }) }`
  expect(await write()).toBe('stored')
  const first = await db.put({ _id: '_design/guard', validate_doc_update: guard('first') })
  expect([await write(), await write(), await write(other)]).toEqual(['first', 'first', 'stored'])
  const second = await db.put({ _id: '_design/guard', _rev: first, validate_doc_update: guard('second') })
  expect(await write()).toBe('second')
  await db.remove('_design/guard', second)
  expect(await write()).toBe('stored')
  await db.put({ _id: '_design/guard', validate_doc_update: guard('third') })
  await db.drop()
  await db.create()
  expect(await write()).toBe('stored')
})

test('an exception in a callback leaves the database usable', async () => {
  const server = new URL('../../embedded/dist/server/', import.meta.url)
  const script = `
    await import('${new URL('mends.js', server).href}')
    const require = createRequire('${new URL('main.js', server).href}')
    const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory'))
    process.on('uncaughtException', () => undefined)
    const db = new PouchDB('x', { adapter: 'memory' })
    const fail = () => { throw new Error('in a callback') }
    await db.put({ _id: 'a' })
    db._bulkDocs({ docs: [{ _id: 'b' }] }, {}, fail)
    db._get('a', {}, fail)
    await db.put({ _id: 'c' })
    console.log((await db.get('a'))._id, (await db.get('c'))._id)`
  const args = [
    '--no-deprecation',
    '--input-type=module',
    '--eval',
    `import { createRequire } from 'node:module'${script}`,
  ]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  expect(stdout.trim()).toBe('a c')
})

test('a map function sees one document at a time, and its rows stay in its database', async () => {
  const { couch } = await startCouch()
  const [db, other] = [couch.db('mapped'), couch.db('mapped-too')]
  const map = 'function (doc) { if (doc.fails) throw new Error("no row"); emit(doc.kind, doc.count); }'
  const reduce = 'function (keys, values, again) { return again ? sum(values) : values.length + sum(values); }'
  for (const made of [db, other]) {
    await made.create()
    await made.put({ _id: '_design/v', views: { counted: { map, reduce }, plain: { map } } })
  }
  await db.bulk(['{"_id":"a","kind":"x","count":1}', '{"_id":"b","fails":true}', '{"_id":"c","kind":"y","count":2}'])
  await other.put({ _id: 'd', kind: 'z', count: 3 })
  const path = '_design/v/_view/plain'
  expect(await answerOf(couch, { db: 'mapped', path })).toMatchObject({
    rows: [
      { id: 'a', key: 'x', value: 1 },
      { id: 'c', key: 'y', value: 2 },
    ],
  })
  expect(await answerOf(couch, { db: 'mapped-too', path })).toMatchObject({ rows: [{ id: 'd', key: 'z', value: 3 }] })
  const counted = { db: 'mapped', path: '_design/v/_view/counted' }
  expect(await answerOf(couch, counted)).toMatchObject({ rows: [{ key: null, value: 5 }] })
})

test('feed rows arrive at once, also for clients that accept compression', async () => {
  const { couch, origin } = await startCouch()
  await couch.db('fed').create()
  const stop = new AbortController()
  const url = `${origin}/fed/_changes?feed=continuous&heartbeat=60000`
  const answer = fetch(url, { headers: { 'accept-encoding': 'gzip' }, signal: stop.signal })
  await couch.db('fed').put({ _id: 'a' })
  for await (const chunk of (await answer).body!) {
    expect(Buffer.from(chunk).toString()).toContain('"id":"a"')
    break
  }
  stop.abort()
})

test('a database with an open feed can be deleted and created again', async () => {
  const { couch, origin } = await startCouch()
  await couch.db('followed').create()
  await couch.db('followed').put({ _id: 'a' })
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const feed = await fetch(`${origin}/followed/_changes?feed=continuous&include_docs=true`, { signal: stop.signal })
  await feed.body!.getReader().read()
  await couch.request({ method: 'DELETE', db: 'followed' })
  await couch.db('followed').create()
  expect(await couch.db('followed').put({ _id: 'b' })).toMatch(/^1-/)
})

test('a deleted database stays deleted, and every open request gets an answer', async () => {
  const { couch } = await startCouch()
  for (let round = 0; round < 5; round++) {
    const db = couch.db(`deleted-${round}`)
    await db.create()
    const statusOf = (request: Promise<unknown>) =>
      request.then(
        () => 200,
        (thrown: CouchError) => thrown.status,
      )
    const answers: Promise<number | undefined>[] = []
    for (let n = 0; n < 12; n++) {
      answers.push(statusOf(n % 2 ? db.info() : db.bulk([`{"_id":"${n}"}`])))
      if (n === 6) answers.push(statusOf(couch.request({ method: 'DELETE', db: db.name })))
      await sleep(2)
    }
    expect(await Promise.all(answers)).toContain(404)
    expect(await couch.request({ path: '_all_dbs' })).not.toContain(db.name)
  }
})

test('feeds end with their database', async () => {
  const { couch } = await startCouch()
  const db = couch.db('followed')
  await db.create()
  const feed = await db.changes({ feed: 'continuous', heartbeat: 20 }, new AbortController().signal)
  await couch.request({ method: 'DELETE', db: db.name })
  for await (const chunk of feed) expect(Buffer.from(chunk).toString().trim()).toBe('')
})

test('a body that curl sends as a form is stored as JSON', async () => {
  const { couch, origin } = await startCouch()
  await couch.db('forms').create()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  await fetch(`${origin}/forms/a`, { method: 'PUT', headers, body: '{"type":"device"}' })
  expect(await couch.db('forms').get('a')).toMatchObject({ type: 'device' })
})

test('an attachment with an incomplete body is not stored', async () => {
  const { couch } = await startCouch()
  const db = couch.db('attached')
  await db.create()
  const _rev = await db.put({ _id: 'a' })
  async function* breaks() {
    yield Buffer.alloc(100_000)
    await sleep(50)
    throw new Error('the source is gone')
  }
  const content = { type: 'text/plain', bytes: breaks() }
  await expect(db.attach({ _id: 'a', _rev }, 'half', content)).rejects.toThrow('the source is gone')
  await sleep(300)
  expect(await db.get('a')).toEqual({ _id: 'a', _rev })
})

test('a request that fails inside the server does not end it', async () => {
  const { couch, origin } = await startCouch()
  await couch.db('bad').create()
  expect((await fetch(`${origin}/bad/_changes?filter=no/such`)).status).toBe(404)
  const answer = await fetch(`${origin}/bad/_bulk_docs`, { method: 'POST', headers: json, body: '{"docs":[null]}' })
  expect(answer.status).toBe(500)
  expect((await couch.db('bad').info()).doc_count).toBe(0)
})

test('the server takes the next port if its port is in use', async () => {
  const occupant = createServer()
  await once(occupant.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void occupant.close())
  const { port } = occupant.address() as AddressInfo
  const { url } = await startCouch({ port })
  expect(Number(new URL(url).port)).toBeGreaterThan(port)
})

test('an aborted start rejects with the reason and leaves nothing behind', async () => {
  const reason = new Error('no longer wanted')
  await expect(startEmbedded({ log, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  const giveUp = new AbortController()
  const starting = startEmbedded({ log, port: 16_984, signal: giveUp.signal })
  setImmediate(() => giveUp.abort(reason))
  await expect(starting).rejects.toBe(reason)
})

test('the server ends with its parent, also when the parent is killed', async () => {
  const script = `
    import { startCouch } from 'couchdb-sidecar-embedded'
    const log = { debug() {}, error() {} }
    console.log((await startCouch({ log, port: 16984 })).url)`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
  expect((await fetch(new URL(url).origin)).status).toBe(200)
  parent.kill('SIGKILL')
  await eventually(() => expect(fetch(new URL(url).origin)).rejects.toThrow())
})
