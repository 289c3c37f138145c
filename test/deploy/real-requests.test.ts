/** Compares the samples for functions with the values that CouchDB passes. */
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { sampleRequests, sampleSecurity, sampleUsers } from '../../sidecar/deploy/sample-requests.ts'
import { stored } from '../../sidecar/deploy/samples.ts'
import { createTestCouch, freshDb, needs } from '../support/couchdb.ts'

/** Names and kinds of values, at every depth. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return typeof value[0] === 'string' ? ['string'] : value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shapeOf(part)]))
}

/** The arguments of the function, which throws them. */
async function reasonOf(requesting: Promise<unknown>): Promise<unknown> {
  const thrown: unknown = await requesting.catch((error: unknown) => error)
  if (!isCouchError(thrown)) throw new Error('it did not throw', { cause: thrown })
  const encoded = /%5B.*%5D/.exec(thrown.reason)?.[0] // Erlang changes quotes
  return JSON.parse(encoded ? decodeURIComponent(encoded) : thrown.reason)
}

test.each(['GET', 'POST'] as const)(
  'a filter gets the request, the user and the security object (%s)',
  async (method) => {
    needs('whole requests')
    const db = await freshDb('shapes')
    const couch = createTestCouch()
    await couch.request({ method: 'PUT', db: db.name, path: '_security', body: sampleSecurity })
    await db.put({
      _id: '_design/app',
      filters: { f: 'function (doc, req) { throw ["error", "shape", encodeURIComponent(toJSON([doc, req]))] }' },
    })
    const query = { filter: 'app/f' }
    const requesting = couch.request({
      method,
      db: db.name,
      path: '_changes',
      query,
      ...(method === 'POST' && { body: {} }),
    })
    const [doc, req] = (await reasonOf(requesting)) as [object, { headers: object; method: string; body: unknown }]
    const { req: sample } = sampleRequests.find(({ how }) => how === `requested by a server admin (${method})`)!
    expect(Object.keys(doc)).toEqual(expect.arrayContaining(Object.keys(stored({ _id: 'sample' }))))
    expect(shapeOf({ ...req, headers: {} })).toEqual(shapeOf({ ...sample, headers: {} }))
    expect(req).toMatchObject({ method, body: sample.body })
    expect(req.headers).toHaveProperty('Host')
  },
)

test('validate_doc_update gets both documents, the user and the security object', async () => {
  needs('whole requests')
  const db = await freshDb('shapes')
  await createTestCouch().request({ method: 'PUT', db: db.name, path: '_security', body: sampleSecurity })
  const rev = await db.put({ _id: 'd', n: 1 })
  const deleted = await gone(db)
  const guard = 'function () { throw { forbidden: toJSON([].slice.call(arguments)) } }'
  await db.put({ _id: '_design/app', validate_doc_update: guard })
  const { userCtx } = sampleUsers.find(({ who }) => who === 'a server admin')!
  const shapes = (newDoc: object, oldDoc: object | null) => shapeOf([newDoc, oldDoc, userCtx, sampleSecurity])

  expect(shapeOf(await reasonOf(db.put({ _id: 'new', n: 1 })))).toEqual(shapes({ _id: 'new', n: 1 }, null))
  const doc = stored({ _id: 'd', n: 1 })
  expect(shapeOf(await reasonOf(db.put({ _id: 'd', n: 1, _rev: rev })))).toEqual(shapes(doc, doc))
  expect(shapeOf(await reasonOf(db.remove('d', rev)))).toEqual(shapes(stored({ _id: 'd', _deleted: true }), doc))
  const over = shapes(stored({ _id: 'gone', n: 1 }), stored({ _id: 'gone', _deleted: true }))
  expect(shapeOf(await reasonOf(db.put({ _id: 'gone', n: 1, _rev: deleted })))).toEqual(over)
})

/** The revision of a deleted document. */
async function gone(db: Database): Promise<string> {
  await db.remove('gone', await db.put({ _id: 'gone' }))
  return (await db.leaves('gone'))[0]!._rev
}
