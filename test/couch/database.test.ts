import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, deleteDb, freshDb, needs, uniqueName } from '../support/couchdb.ts'

const ids = ['plain', 'with space', 'a/b', 'ä?&=#%', '_design/with/slash', '🐘']

test.each(ids)('a document with the id %s can be written, read and removed', async (id) => {
  const db = await freshDb('ids')
  const rev = await db.put({ _id: id, n: 1 })
  expect(await db.get(id)).toEqual({ _id: id, _rev: rev, n: 1 })
  await db.remove(id, rev)
  expect(await db.find(id)).toBeUndefined()
})

test('a database is created once, and a second create reports that it exists', async () => {
  needs('slash in database names')
  const name = `${uniqueName('made')}/with+slash`
  onTestFinished(() => deleteDb(name))
  const db = createTestCouch().db(name)
  expect(await db.create()).toBe(true)
  expect(await db.create()).toBe(false)
  expect(await db.info()).toMatchObject({ db_name: name })
})

test('many documents are read in one request, without missing or deleted ones', async () => {
  const db = await freshDb('many')
  await db.put({ _id: 'a' })
  await db.remove('b', await db.put({ _id: 'b' }))
  expect((await db.getMany(['a', 'b', 'c'])).map((doc) => doc._id)).toEqual(['a'])
})

test('a leaf that CouchDB could not check is not mistaken for a refused one', async () => {
  const db = await freshDb()
  const guard = 'function (doc) { if (doc.no) throw { forbidden: "no" }; if (doc.what) throw "what?" }'
  await db.put({ _id: '_design/guard', validate_doc_update: guard })
  const leaf = (_id: string) => ({ _id, _rev: '1-a', _revisions: { start: 1, ids: ['a'] } })
  await db.merge([leaf('good'), { ...leaf('bad'), no: true }])
  await expect(db.merge([{ ...leaf('unknown'), what: true }])).rejects.toMatchObject({ retry: 'soon' })
  expect(await db.getMany(['good', 'bad', 'unknown'])).toHaveLength(1)
})
