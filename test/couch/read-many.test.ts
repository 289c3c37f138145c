/** Reads many documents in one request, with the endpoint that suits the server. */
import { Readable } from 'node:stream'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { createReadInParts } from '../../sidecar/docstate/finding/read.ts'
import { Attempts } from '../../sidecar/docstate/attempts.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { cutAfterBytes, refuse, startFaultyProxy, type Fault, type SeenRequest } from '../support/faulty-proxy.ts'
import { replicate } from '../docstate/conflicts/branches.ts'

const isMany = ({ method, path }: SeenRequest) => method === 'POST' && /_bulk_get|_all_docs/.test(path)

/** A database with a conflict, a document whose other branch is deleted, and a deleted document. */
async function setUp() {
  const db = await freshDb('read_many')
  const proxy = await startFaultyProxy()
  for (const _id of ['plain', 'branched', 'merged', 'gone', 'a/b é']) {
    const rev = await db.put({ _id, n: 1 })
    const second = await db.put({ _id, n: 2, _rev: rev })
    if (_id === 'branched') await replicate(db, rev, 1, { _id, n: 3 }, '0')
    if (_id === 'merged') await db.remove(_id, await replicate(db, rev, 1, { _id, n: 3 }, '0'))
    if (_id === 'gone') await db.remove(_id, second)
  }
  return { db, proxy, through: createTestCouch({ url: proxy.url }).db(db.name) }
}

async function readInParts(db: Database, wanted: readonly string[]) {
  const log = pino({ level: 'silent' })
  const attempts = new Attempts({ log, onEnded: () => undefined })
  const [read, unreadable]: [string[], string[]] = [[], []]
  for await (const { docs, failed } of createReadInParts(db, attempts, log)(wanted, new AbortController().signal)) {
    read.push(...docs.map(({ doc }) => doc._id))
    unreadable.push(...failed)
  }
  return { read, unreadable }
}

const ids = ['plain', 'branched', 'nowhere', 'merged', 'gone', 'a/b é']

test('documents are read with their conflicts, without deleted ones', async () => {
  const { db, proxy, through } = await setUp()
  const single = await Promise.all(ids.map((id) => db.find(id, { conflicts: true })))
  const expected = single.filter((doc) => doc !== undefined)
  expect(expected.map(({ _id }) => _id)).toEqual(['plain', 'branched', 'merged', 'a/b é'])
  expect(expected[1]!._conflicts).toHaveLength(1)
  expect(await through.getMany(ids)).toEqual(expected)
  const other = createTestCouch({ url: proxy.url }).db(db.name)
  proxy.next(refuse(403), ({ path }) => path === '/') // the server does not identify itself
  expect(await other.getMany(ids)).toEqual(expected)
  expect(proxy.requests.filter(isMany).at(-1)!.path).toMatch(/_all_docs$/)
})

const says =
  (body: Buffer): Fault =>
  async (exchange) => {
    await exchange.send({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Readable.from([body]),
    })
    exchange.end()
  }

test('a document that the server could not read is not mistaken for a deleted one', async () => {
  const { proxy, through } = await setUp()
  await through.getMany(ids)
  const error = { id: 'plain', rev: 'undefined', error: 'internal_fabric_error', reason: 'timeout' }
  const rows = (name: string) => [{ id: 'plain', [name]: [{ error }] }]
  const said = { results: rows('docs'), rows: [{ key: 'plain', error: 'timeout' }] }
  proxy.next(says(Buffer.from(JSON.stringify(said))), isMany)
  await expect(through.getMany(['plain'])).rejects.toMatchObject({ code: 'server' })
})

test('an unreadable document does not prevent the read of the others', async () => {
  const { proxy, through } = await setUp()
  proxy.plan((request) => (isMany(request) && request.body.includes('"merged"') ? cutAfterBytes(10) : undefined))
  expect(await readInParts(through, ids)).toEqual({ read: ['plain', 'branched', 'a/b é'], unreadable: ['merged'] })
})

test('if _bulk_get is forbidden, the documents are read through _all_docs', async () => {
  const { proxy, through } = await setUp()
  proxy.plan(({ path }) => (path.endsWith('/_bulk_get') ? refuse(403) : undefined))
  expect((await through.getMany(ids)).map(({ _id }) => _id)).toEqual(['plain', 'branched', 'merged', 'a/b é'])
})

test('an answer beyond the size limit is requested again in parts', async () => {
  const { db, proxy, through } = await setUp()
  const many = Array.from({ length: 20 }, (_, i) => `d${i}`)
  await db.bulk(many.map((_id) => JSON.stringify({ _id })))
  const tooLong = says(
    Buffer.concat([Buffer.from('{"results":[],"rows":['), Buffer.alloc(65 * 1024 * 1024, ' '), Buffer.from(']}')]),
  )
  const sizes: number[] = []
  proxy.plan((request) => {
    if (!isMany(request)) return undefined
    const { docs, keys } = JSON.parse(request.body) as { docs?: unknown[]; keys?: unknown[] }
    sizes.push((docs ?? keys)!.length)
    return sizes.length <= 2 ? tooLong : undefined
  })
  const { read } = await readInParts(through, many)
  expect(read).toEqual(many)
  expect(sizes.slice(0, 4)).toEqual([5, 2, 1, 19])
})
