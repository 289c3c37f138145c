import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterBytes,
  cutAfterUpstream,
  cutInLine,
  delay,
  inject,
  inPieces,
  pass,
  refuse,
  silence,
  silenceAfterBytes,
  startFaultyProxy,
  type Fault,
  type FaultyProxy,
} from '../support/faulty-proxy.ts'

let proxy: FaultyProxy
let couch: Couch
let direct: Database
let db: Database

beforeEach(async () => {
  direct = await freshDb('proxied')
  proxy = await startFaultyProxy()
  couch = createTestCouch({ url: proxy.url })
  db = couch.db(direct.name)
})

/** The text of a continuous feed from its start, and whether the feed broke. */
async function readFeed(fault: Fault): Promise<{ text: string; broke: boolean; chunks: number }> {
  await direct.put({ _id: 'döc-1' })
  await direct.put({ _id: 'döc-2' })
  proxy.next(fault)
  const stop = new AbortController()
  const decoder = new TextDecoder()
  let text = ''
  let chunks = 0
  try {
    const feed = await db.changes({ feed: 'continuous', since: 0, heartbeat: 100 }, stop.signal)
    for await (const chunk of feed) {
      text += decoder.decode(chunk, { stream: true })
      chunks += 1
      if (text.endsWith('\n\n\n')) stop.abort()
    }
  } catch {
    return { text, broke: !stop.signal.aborted, chunks }
  }
  return { text, broke: false, chunks }
}

test('without a plan the proxy passes and records every request, credentials included', async () => {
  await db.put({ _id: 'ä' })
  expect(await direct.get('ä')).toMatchObject({ _id: 'ä' })
  expect(proxy.requests).toMatchObject([{ method: 'PUT', path: `/${db.name}/%C3%A4`, body: '{"_id":"ä"}' }])
})

test('a request without credentials stays anonymous', async () => {
  const stranger = createTestCouch({ url: new URL(proxy.url).origin })
  expect(await stranger.request({ path: '_session' })).toMatchObject({ userCtx: { name: null, roles: [] } })
})

test.each([401, 403, 429, 500, 503])(
  'a refusal with %i has the words of CouchDB and never reaches the server',
  async (status) => {
    proxy.next(refuse(status))
    await expect(db.put({ _id: 'a' })).rejects.toMatchObject({
      status,
      error: expect.stringMatching(/^\w+$/) as string,
    })
    expect(await direct.find('a')).toBeUndefined()
  },
)

test('a cut before the request prevents the write, and a cut after it does not', async () => {
  proxy.next(cut)
  await expect(db.put({ _id: 'before' })).rejects.toMatchObject({ code: 'unreachable' })
  proxy.next(cutAfterUpstream)
  await expect(db.put({ _id: 'after' })).rejects.toMatchObject({ code: 'unreachable' })
  expect(await direct.find('before')).toBeUndefined()
  expect(await direct.find('after')).toBeDefined()
})

test('a plan applies to each request until the next plan, and one-time faults apply first', async () => {
  proxy.plan(({ method }) => (method === 'PUT' ? refuse(503) : undefined))
  proxy.next(refuse(403), ({ path }) => path.endsWith('/a'))
  await expect(db.put({ _id: 'b' })).rejects.toMatchObject({ status: 503 })
  await expect(db.put({ _id: 'a' })).rejects.toMatchObject({ status: 403 })
  await expect(db.put({ _id: 'a' })).rejects.toMatchObject({ status: 503 })
  await expect(db.info()).resolves.toBeDefined()
  proxy.plan(() => pass)
  await db.put({ _id: 'a' })
})

test('a fault breaks a feed after a number of bytes', async () => {
  expect(await readFeed(cutAfterBytes(10))).toMatchObject({
    broke: true,
    text: expect.stringMatching(/^.{9,10}$/s) as string,
  })
})

test('a fault breaks a feed within a row', async () => {
  const { broke, text } = await readFeed(cutInLine(1))
  expect(broke).toBe(true)
  const rows = text.trim().split('\n')
  expect(JSON.parse(rows[0]!)).toMatchObject({ changes: [{}] })
  expect(() => void JSON.parse(rows[1]!)).toThrow(SyntaxError)
})

test('a feed in pieces of one byte has the same content', async () => {
  const { text, chunks } = await readFeed(inPieces(1))
  expect(chunks).toBeGreaterThan(2)
  const ids = text
    .trim()
    .split(/\n+/)
    .map((row) => (JSON.parse(row) as { id: string }).id)
  expect(ids.sort()).toEqual(['döc-1', 'döc-2'])
})

test('a fault inserts garbage between rows', async () => {
  const { text } = await readFeed(inject('<html>\n', 1))
  const lines = text.trim().split(/\n+/)
  expect(lines).toHaveLength(3)
  expect(lines[1]).toBe('<html>')
})

test('silence keeps the connection open until the client closes it', async () => {
  proxy.next(silence)
  const stop = new AbortController()
  const requesting = db.info({ signal: stop.signal })
  await eventually(() => expect(proxy.requests).toHaveLength(1))
  expect(proxy.openConnections).toBe(1)
  stop.abort()
  await expect(requesting).rejects.toThrow()
  await eventually(() => expect(proxy.openConnections).toBe(0))
})

test('a fault silences a feed after some bytes', async () => {
  await direct.put({ _id: 'a' })
  const stop = new AbortController()
  proxy.next(silenceAfterBytes(5))
  const [silent, talking] = [await openFeed(stop.signal), await openFeed(stop.signal)]
  await silent.next()
  const more = silent.next()
  for (let heartbeats = 0; heartbeats < 5; heartbeats++) await talking.next()
  expect(await Promise.race([more, Promise.resolve('silence')])).toBe('silence')
  stop.abort()
  await expect(more).rejects.toThrow()
})

test('a frozen proxy holds all traffic until it is released', async () => {
  proxy.freeze(true)
  const writing = db.put({ _id: 'a' })
  await eventually(() => expect(proxy.requests).toHaveLength(1))
  expect(await direct.find('a')).toBeUndefined()
  proxy.freeze(false)
  await writing
  expect(await direct.find('a')).toBeDefined()
})

test('a delay holds a request and can end in another fault', async () => {
  const before = performance.now()
  proxy.next(delay(100, refuse(500)))
  await expect(db.info()).rejects.toMatchObject({ status: 500 })
  expect(performance.now() - before).toBeGreaterThan(90)
})

test('the proxy drops connections, refuses them, and accepts them again', async () => {
  const stop = new AbortController()
  const feed = await db.changes({ feed: 'continuous', heartbeat: 50 }, stop.signal)
  const reading = (async () => {
    for await (const _chunk of feed);
  })()
  proxy.dropConnections()
  await expect(reading).rejects.toMatchObject({ code: 'unreachable' })
  await proxy.down()
  await expect(db.info()).rejects.toMatchObject({ code: 'unreachable' })
  await proxy.up()
  await expect(db.info()).resolves.toBeDefined()
})

async function openFeed(signal: AbortSignal): Promise<AsyncIterator<Uint8Array>> {
  const feed = await db.changes({ feed: 'continuous', heartbeat: 50 }, signal)
  return feed[Symbol.asyncIterator]()
}

test('a server that breaks within a chunk breaks the connection of the client', async () => {
  const broken = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n{"error"'))
  })
  onTestFinished(() => void broken.close())
  await once(broken.listen(0, '127.0.0.1'), 'listening')
  const { url } = await startFaultyProxy(`http://127.0.0.1:${(broken.address() as AddressInfo).port}`)
  await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow('terminated')
})

test('an answer ends when its client disconnects, also during a write', async () => {
  let hasEnded = false
  proxy.next(async (exchange) => {
    const { body: _body, ...head } = await exchange.forward()
    async function* body() {
      yield Buffer.from('{')
      proxy.dropConnections()
      yield Buffer.from('}')
    }
    await exchange.send({ ...head, body: body() })
    hasEnded = true
  })
  await expect(db.info()).rejects.toThrow()
  await eventually(() => expect(hasEnded).toBe(true))
})
