import http from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createCouch, type CouchRequest } from '../../sidecar/couch/client.ts'
import { createDatabase } from '../../sidecar/couch/database.ts'
import { isCouchError, retryTable, type CouchErrorCode } from '../../sidecar/couch/couch-errors.ts'
import { requestNode } from '../../sidecar/couch/node.ts'
import { anything, done, names, rowsOf, stored, type Schema } from '../../sidecar/couch/schemas.ts'
import { couchUrl, createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  answerWith,
  cut,
  cutAfterBytes,
  delay,
  inject,
  refuse,
  silence,
  silenceAfterBytes,
  startFaultyProxy,
  type Fault,
} from '../support/faulty-proxy.ts'

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (thrown) {
    if (isCouchError(thrown)) return thrown.code
    throw thrown
  }
  return 'no error'
}

const faults: [string, Fault, CouchErrorCode][] = [
  ['401', refuse(401), 'unauthorized'],
  ['403', refuse(403), 'forbidden'],
  ['404', refuse(404), 'not_found'],
  ['409', refuse(409), 'conflict'],
  ['a 412', refuse(412), 'server'],
  ['a 412 of an existing database', refuse(412, { error: 'file_exists', reason: 'x' }), 'exists'],
  [
    'a 412 of a cluster with too few nodes',
    refuse(412, { error: 'nodedown', reason: 'progress not possible' }),
    'server',
  ],
  ['413', refuse(413), 'too_large'],
  ['429', refuse(429), 'overloaded'],
  ['503', refuse(503), 'overloaded'],
  ['500', refuse(500), 'server'],
  [
    'a 500 of a server with too many open databases',
    refuse(500, { error: 'all_dbs_active', reason: 'x' }),
    'overloaded',
  ],
  ['400', refuse(400), 'bad_request'],
  ['a connection cut before the answer', cut, 'unreachable'],
  ['a body cut short', cutAfterBytes(20), 'garbled'],
  ['a body that is not JSON', inject('<html>'), 'garbled'],
]
test.each(faults)('%s gets its own error code', async (_, fault, code) => {
  const db = await freshDb('client')
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  proxy.next(fault)
  expect(await codeOf(couch.db(db.name).info())).toBe(code)
  expect(await couch.db(db.name).info()).toMatchObject({ db_name: db.name })
})

/** Bodies that a proxy may send in place of CouchDB's answer. */
const bodies = ['null', 'true', '0', '"text"', '', '{', '[', '<html>', '[null]', '{}', '\u0000', '\ufeffnull']
const strange = [
  '{"error":null,"reason":{"a":1},"message":7}',
  '{"statusCode":200,"status":404,"code":"not_found","name":"x","stack":"y","request":"z"}',
  '{"__proto__":{"error":"conflict"},"toString":1}',
  JSON.stringify({ error: 'e'.repeat(100_000), reason: 'r'.repeat(100_000) }),
]

test.each<[number, CouchErrorCode]>([
  [302, 'garbled'],
  [401, 'unauthorized'],
  [404, 'not_found'],
  [500, 'server'],
])('a %i is classified by its status alone, with any body', async (status, code) => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  for (const text of [...bodies, ...strange]) {
    proxy.next(answerWith(status, text))
    const thrown = await couch.request({ path: '_all_dbs' }).catch((thrown: unknown) => thrown)
    expect(thrown, text).toMatchObject({ code, status, request: 'GET /_all_dbs' })
    expect(String(thrown).length).toBeLessThan(11_000)
  }
  proxy.next(answerWith(status, 'null'))
  const stream = couch.stream({ path: '_changes', signal: new AbortController().signal })
  await expect(stream).rejects.toMatchObject({ code, status })
})

test('a 200 must contain an object or array, with any content type; all other bodies are garbled', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  for (const type of ['application/json', 'text/plain;charset=utf-8', 'text/html']) {
    for (const text of bodies) {
      proxy.next(answerWith(200, text, type))
      const isOne = ['{}', '[null]'].includes(text)
      expect(await codeOf(couch.request({ path: '_all_dbs' })), text).toBe(isOne ? 'no error' : 'garbled')
    }
  }
})

test('every error code has an entry in the retry table', () => {
  for (const [, , code] of faults) expect(retryTable[code]).toMatch(/soon|slowly|never/)
})

test('an unanswered request ends in a timeout, and an abort ends it at once with its reason', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  proxy.plan(() => silence)
  expect(await codeOf(couch.request({ path: '_all_dbs', timeoutMs: 100 }))).toBe('timeout')
  const abort = new AbortController()
  const requested = couch.request({ path: '_all_dbs', signal: abort.signal })
  abort.abort(new Error('enough'))
  await expect(requested).rejects.toThrow('enough')
})

test('a request whose answer does not begin in time is repeated once, with the remaining time', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const ask = (timeoutMs: number) => couch.request({ path: '_all_dbs', beginsWithinMs: 500, timeoutMs })
  proxy.next(silence)
  proxy.next(delay(1000))
  expect(await ask(60_000)).toEqual(expect.any(Array))
  expect(proxy.requests).toHaveLength(2)
  proxy.next(refuse(500))
  expect(await codeOf(ask(60_000))).toBe('server')
  expect(proxy.requests).toHaveLength(3)
  proxy.plan(() => silence)
  expect(await codeOf(ask(1500))).toBe('timeout')
  expect(proxy.requests).toHaveLength(5)
})

test('an answer that has begun may take the whole timeout', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  proxy.next(silenceAfterBytes(5))
  const requested = couch.request({ path: '_all_dbs', beginsWithinMs: 2000, timeoutMs: 4000 })
  await expect(requested).rejects.toMatchObject({ code: 'timeout', reason: 'no answer within 4000 ms' })
  expect(proxy.requests).toHaveLength(1)
})

test('no request of a visit waits long for a lost answer', async () => {
  const proxy = await startFaultyProxy()
  const { name } = await freshDb()
  const couch = createTestCouch({ url: proxy.url })
  const impatient = { ...couch, request: (requested: CouchRequest) => couch.request(hurried(requested), anything) }
  const db = createDatabase(impatient, name, () => Promise.resolve([]))
  for (const ask of [
    () => db.info(),
    () => db.life(undefined),
    () => db.find('_design/sidecar'),
    () => db.find('_local/place'),
    () => db.leaves('a'),
    () => db.security(),
    () => db.changesPage({ limit: 1 }),
  ]) {
    proxy.next(silence)
    await ask()
  }
})

const hurried = (requested: CouchRequest): CouchRequest =>
  requested.beginsWithinMs === undefined ? { ...requested, timeoutMs: 1000 } : { ...requested, beginsWithinMs: 50 }

test('a request to a node that does not answer is repeated once', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const ask = () => requestNode(couch, 'couchdb@a/b', '_versions', anything, { beginsWithinMs: 300, timeoutMs: 1500 })
  proxy.plan(() => silence)
  expect(await codeOf(ask())).toBe('timeout')
  expect(proxy.requests.map(({ path }) => path)).toEqual(Array(2).fill('/_node/couchdb%40a%2Fb/_versions'))
  proxy.plan(() => undefined)
  proxy.next(silence)
  proxy.next(answerWith(200, '{"javascript_engine":{"name":"quickjs"}}'))
  expect(await ask()).toEqual({ javascript_engine: { name: 'quickjs' } })
})

test('a closed port is unreachable', async () => {
  const couch = createTestCouch({ url: 'http://admin:secret@127.0.0.1:1' })
  expect(await codeOf(couch.request({ path: '_all_dbs' }))).toBe('unreachable')
})

test('neither errors nor the client’s URL contain the password', async () => {
  const url = new URL(couchUrl())
  url.password = 'hunter2'
  const couch = createTestCouch({ url: url.href })
  const shown = await couch.request({ path: '_all_dbs' }).catch((thrown: unknown) => thrown)
  expect(JSON.stringify([shown, String(shown), Object.entries(shown as object)])).not.toContain('hunter2')
  expect(couch.url).not.toContain('hunter2')
})

test('URL-escaped credentials are sent unescaped', async () => {
  const seen: (string | undefined)[] = []
  const server = http.createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const couch = createTestCouch({ url: `http://us%40er:p%3A%2F%25@127.0.0.1:${port}/below/` })
  await couch.request({ path: '_all_dbs' })
  expect(Buffer.from(seen[0]!.slice('Basic '.length), 'base64').toString()).toBe('us@er:p:/%')
  expect(couch.url).toBe(`http://127.0.0.1:${port}/below`)
})

test('the client opens no more connections than its limit, with any number of waiting requests', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 3 })
  let most = 0
  proxy.plan(() => {
    most = Math.max(most, proxy.openConnections)
    return undefined
  })
  await Promise.all(Array.from({ length: 40 }, () => couch.request({ path: '_all_dbs' })))
  expect(most).toBeLessThanOrEqual(3)
})

test('requests with priority overtake a queued request, and the timeout of a queued request does not run', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 1 })
  proxy.plan(() => delay(900))
  const ask = (path: string, first = false) => couch.request({ path, first, timeoutMs: 3000 })
  const one = ask('_all_dbs')
  await new Promise(setImmediate)
  await Promise.all([one, ask('_session'), ask('_session'), ask('_session'), ask('', true)])
  expect(proxy.requests.map(({ path }) => path)).toEqual(['/_all_dbs', '/', '/_session', '/_session', '/_session'])
})

test('an abort also ends a queued request', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 1 })
  proxy.plan(() => delay(300))
  const abort = new AbortController()
  const [one, two] = [couch.request({ path: '_all_dbs' }), couch.request({ path: '_session', signal: abort.signal })]
  abort.abort(new Error('enough'))
  await expect(two).rejects.toThrow('enough')
  await one
  await couch.request({ path: '_all_dbs' })
  expect(proxy.requests.map(({ path }) => path)).toEqual(['/_all_dbs', '/_all_dbs'])
})

test('requests with priority have reserved connections, while other requests are slow', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 3, kept: 1 })
  proxy.plan(({ path }) => (path === '/_all_dbs' ? silence : undefined))
  const sent: number[] = []
  const abort = new AbortController()
  const slow = [1, 2, 3].map((i) =>
    couch.request({ path: '_all_dbs', signal: abort.signal, onSent: () => sent.push(i) }).catch(() => 'broken off'),
  )
  for (let i = 0; i < 3; i++) await couch.request({ path: '_session', first: true })
  expect(sent).toEqual([1, 2])
  abort.abort(new Error('enough'))
  expect(await Promise.all(slow)).toEqual(slow.map(() => 'broken off'))
  await couch.request({ path: '_session' })
})

test('a long poll takes no connection from other requests', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 1 })
  proxy.plan(({ query }) => (query.has('feed') ? delay(1000) : undefined))
  let received = false
  const waiting = couch
    .request({ path: '_all_dbs', query: { feed: 'longpoll' }, waits: true })
    .then(() => (received = true))
  await couch.request({ path: '_session' })
  expect(received).toBe(false)
  await waiting
  const refused = couch.request({ path: '_nothing/here', waits: true })
  await expect(refused).rejects.toMatchObject({ request: 'GET /_nothing/here', status: expect.any(Number) as number })
})

test('a patience limit bounds the wait of each request, for an answer and in the queue', async () => {
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url, connections: 1, patienceMs: 300 })
  proxy.plan(() => silence)
  const requested = ['_all_dbs', '_session', ''].map((path) => codeOf(couch.request({ path })))
  expect(await Promise.all(requested)).toEqual(requested.map(() => 'timeout'))
  proxy.plan(() => undefined)
  await couch.request({ path: '_session' })
})

test('a closed client leaves no open connection', async () => {
  const proxy = await startFaultyProxy()
  const couch = createCouch({ url: proxy.url })
  await couch.request({ path: '_all_dbs' })
  expect(proxy.openConnections).toBeGreaterThan(0)
  await couch.close()
  await eventually(() => expect(proxy.openConnections).toBe(0), { within: 3000 })
})

test.each<[string, Schema<unknown>, string]>([
  ['{}', done, 'expected true at ok, got nothing'],
  ['[null]', names, 'expected string at 0, got null'],
  [`{"rows":"${'x'.repeat(100)}"}`, rowsOf(stored), `expected array at rows, got "${'x'.repeat(79)}`],
])(
  'an answer %s that does not match its schema is an error with expected and actual value',
  async (text, schema, said) => {
    const proxy = await startFaultyProxy()
    const couch = createTestCouch({ url: proxy.url })
    proxy.plan(() => answerWith(200, text))
    await expect(couch.request({ path: '_all_dbs' }, schema)).rejects.toMatchObject({
      code: 'garbled',
      message: `GET /_all_dbs: ${said}; is CouchDB at this address?`,
    })
  },
)

test.each(['.', '..', '...', '%2E%2E', 'a/../b', '_design/..', '_local/..'])(
  'a document can have the id %j',
  async (_id) => {
    const db = await freshDb('dots')
    await db.put({ _id, is: 'there' })
    expect(await db.find(_id)).toMatchObject({ _id, is: 'there' })
    const { _rev } = await db.get(_id)
    await db.remove(_id, _rev)
    expect(await db.find(_id)).toBeUndefined()
  },
)
