import { expect, test } from 'vitest'
import { readInParts } from '../../sidecar/couch/read-in-parts.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'

test('any number of documents is read in the order of the given ids, without missing ones', async () => {
  const db = await freshDb()
  const ids = Array.from({ length: 120 }, (_, i) => `doc-${119 - i}`)
  await db.bulk(ids.map((_id) => JSON.stringify({ _id })))
  const docs = await readInParts(db, ['missing', ...ids], {})
  expect(docs.map(({ _id }) => _id)).toEqual(ids)
  expect(await readInParts(db, [], {})).toEqual([])
})

test('documents that are too large for one answer are read one by one', async () => {
  const db = await freshDb()
  const ids = Array.from({ length: 51 }, (_, i) => `doc-${i}`)
  await db.bulk(ids.map((_id) => JSON.stringify({ _id })))
  const proxy = await startFaultyProxy()
  const isFirst = (body: string) => body.includes('"doc-0"')
  proxy.plan(({ method, body }) => (method === 'POST' && isFirst(body) ? refuse(413) : undefined))
  const docs = await readInParts(createTestCouch({ url: proxy.url }).db(db.name), ids, {})
  expect(docs.map(({ _id }) => _id)).toEqual(ids)
})
