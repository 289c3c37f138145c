/**
 * The differences between the embedded server and CouchDB. Tests that need CouchDB's behaviour call `needs()`;
 * docs/quirks.md lists them. If a test fails here, pouchdb-server has been fixed: remove the difference from both.
 */
import { pbkdf2Sync } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { startCouch, type EmbeddedCouch } from '../../embedded/src/couch.ts'
import { createCouch, type Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import build from '../acceptance/build.ts'
import { uniqueName } from '../support/couchdb.ts'
import { answerOf } from '../support/answers.ts'

let server: EmbeddedCouch
let couch: Couch
let db: Database

beforeAll(async () => {
  await build()
  server = await startCouch({ log: pino({ level: 'silent' }), port: 17_984 })
  couch = createCouch({ url: server.url })
})

afterAll(async () => {
  await couch.close()
  await server.close()
})

beforeEach(async () => {
  db = couch.db(uniqueName('different'))
  await db.create()
})

/** A client with the credentials of a new user, or an anonymous one. */
async function clientOf(user?: Record<string, unknown>): Promise<Couch> {
  const url = new URL(server.url)
  url.username = url.password = ''
  if (user) {
    const name = uniqueName('user')
    await couch.db('_users').put({ _id: `org.couchdb.user:${name}`, type: 'user', name, roles: [], ...user })
    url.username = name
    url.password = 'secret'
  }
  const client = createCouch({ url: url.href })
  onTestFinished(() => client.close())
  return client
}

const guard = (source: string) => db.put({ _id: '_design/guard', validate_doc_update: source })
const secure = () =>
  couch.request({ method: 'PUT', db: db.name, path: '_security', body: { members: { names: [], roles: ['member'] } } })

test('bulk fields checked: a field that begins with _ is answered with 500', async () => {
  await expect(db.bulk(['{"_id":"a","_oops":1}'])).rejects.toMatchObject({ status: 500 })
})

test('bulk rows in order: refused rows come first', async () => {
  await guard('function (doc) { if (doc.bad) throw({ forbidden: "bad" }) }')
  const rows = await db.bulk(['{"_id":"a"}', '{"_id":"b","bad":true}', '{"_id":"c"}'])
  expect(rows.map(({ id }) => id)).toEqual(['b', 'a', 'c'])
})

test('bulk secObj: the security object is empty', async () => {
  await secure()
  await guard('function (doc, old, user, sec) { throw({ forbidden: JSON.stringify(sec) }) }')
  expect(await db.bulk(['{"_id":"a"}'])).toMatchObject([{ reason: '{}' }])
  await expect(db.put({ _id: 'a' })).rejects.toMatchObject({ reason: expect.stringContaining('member') as string })
})

test('closed databases: a new database is open to anonymous clients', async () => {
  const anonymous = await clientOf()
  await expect(anonymous.db(db.name).put({ _id: 'a' })).resolves.toMatch(/^1-/)
})

test('database identity: instance_start_time belongs to the server, not to the database', async () => {
  expect((await db.info()).instance_start_time).toBe((await couch.db('_users').info()).instance_start_time)
})

test('feed parameters: a continuous feed ignores timeout and limit', async () => {
  await db.bulk(['{"_id":"a"}', '{"_id":"b"}'])
  const stop = new AbortController()
  const query = { feed: 'continuous', limit: 1, timeout: 20, heartbeat: 50 }
  let text = ''
  for await (const chunk of await db.changes(query, stop.signal)) {
    text += Buffer.from(chunk).toString()
    if (text.endsWith('\n\n\n')) break
  }
  stop.abort()
  expect(text.match(/"id"/g)).toHaveLength(2)
  expect(text).not.toContain('last_seq')
})

test('guarded find: anonymous clients may search a database that they may not read', async () => {
  await db.put({ _id: 'a', said: 'secret' })
  await secure()
  const anonymous = (await clientOf()).db(db.name)
  await expect(anonymous.get('a')).rejects.toMatchObject({ status: 401 })
  const found = (await clientOf()).request({ method: 'POST', db: db.name, path: '_find', body: { selector: {} } })
  await expect(found).resolves.toMatchObject({ docs: [{ said: 'secret' }] })
})

test('guarded revisions: validate_doc_update does not see _revisions', async () => {
  await guard('function (doc) { throw({ forbidden: JSON.stringify(doc) }) }')
  const replicated = { _id: 'a', _rev: '2-b', _revisions: { start: 2, ids: ['b', 'a'] } }
  const body = { new_edits: false, docs: [replicated] }
  const rows = await couch.request({ method: 'POST', db: db.name, path: '_bulk_docs', body })
  expect(rows).toMatchObject([{ reason: '{"_id":"a","_rev":"2-b"}' }])
})

test('index lag: the progress of an index is not reported', async () => {
  await db.put({ _id: '_design/x', views: { all: { map: 'function (doc) { emit(doc._id) }' } } })
  const info = await couch.request({ db: db.name, path: '_design/x/_info' })
  expect(info).toMatchObject({ view_index: 'Not implemented.' })
})

test('local without revision: a write without the revision is a conflict', async () => {
  await db.put({ _id: '_local/a' })
  await expect(db.put({ _id: '_local/a' })).rejects.toMatchObject({ code: 'conflict' })
})

test.each(['_up', '_node/_local/_versions'])('node endpoints: /%s does not exist', async (path) => {
  await expect(couch.request({ path })).rejects.toMatchObject({ code: 'not_found' })
})

test('metrics role: no user may have the role _metrics', async () => {
  await expect(clientOf({ password: 'secret', roles: ['_metrics'] })).rejects.toMatchObject({ code: 'forbidden' })
})

test('own user document: users may give themselves any role', async () => {
  const user = await clientOf({ password: 'secret' })
  const { userCtx } = await answerOf<{ userCtx: { name: string } }>(user, { path: '_session' })
  const own = await user.db('_users').get<{ _id: string }>(`org.couchdb.user:${userCtx.name}`)
  await user.db('_users').put({ ...own, roles: ['anything'] })
  expect(await user.request({ path: '_session' })).toMatchObject({ userCtx: { roles: ['anything'] } })
})

test.each([
  { prf: 'sha', digest: 'sha1', bytes: 20, outcome: 'a user' },
  { prf: 'sha256', digest: 'sha256', bytes: 32, outcome: 'unauthorized' },
])('pbkdf2 other than sha1: a login with $prf gives $outcome', async ({ prf, digest, bytes, outcome }) => {
  const derived_key = pbkdf2Sync('secret', 'salt', 10, bytes, digest).toString('hex')
  const hashed = { password_scheme: 'pbkdf2', pbkdf2_prf: prf, iterations: 10, salt: 'salt', derived_key }
  const session = (await clientOf(hashed)).request({ path: '_session' })
  if (outcome === 'unauthorized') await expect(session).rejects.toMatchObject({ code: 'unauthorized' })
  else await expect(session).resolves.toMatchObject({ info: { authenticated: 'default' } })
})

test('refusals by status: a user who is not a member gets 401, and 401 rows for a bulk', async () => {
  await secure()
  const outsider = (await clientOf({ password: 'secret' })).db(db.name)
  await expect(outsider.put({ _id: 'a' })).rejects.toMatchObject({ status: 401 })
  expect(await outsider.bulk(['{"_id":"a"}'])).toMatchObject([{ id: 'a', error: 'unauthorized' }])
})

test('size limit: nine megabytes are accepted', async () => {
  await expect(db.put({ _id: 'a', large: 'x'.repeat(9_000_000) })).resolves.toMatch(/^1-/)
})

test('slash in database names: the server drops the slash', async () => {
  const name = uniqueName('slash')
  const slashed = couch.db(`a/${name}`)
  await slashed.create()
  expect(await slashed.info()).toMatchObject({ db_name: `a${name}` })
})

test('whole requests: userCtx lacks the database', async () => {
  await guard('function (doc, old, user) { throw({ forbidden: Object.keys(user).sort().join() }) }')
  expect(await db.bulk(['{"_id":"a"}'])).toMatchObject([{ reason: 'name,roles' }])
})
