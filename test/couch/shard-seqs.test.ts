import fc from 'fast-check'
import { expect, test } from 'vitest'
import { extentOf as clientExtentOf } from '../../client/src/sync/extent.ts'
import { seqFrom, seqText } from '../../sidecar/couch/documents.ts'
import { changesAt, extentOf, isBehind } from '../../sidecar/couch/shard-seqs.ts'
import { freshDb, needs } from '../support/couchdb.ts'

const sumOf = (files: Readonly<Record<string, number>> = {}) => Object.values(files).reduce((sum, seq) => sum + seq, 0)

test('sidecar and client read the count of each shard file from a sequence, also after many changes', async () => {
  needs('database identity')
  const db = await freshDb('shards')
  const q = (await db.info()).cluster?.q ?? 0
  expect(q).toBeGreaterThan(0)
  for (let written = 0; written < 700; written += 100) {
    const seq = (await db.info()).update_seq
    const { changes, files } = extentOf(seq)
    expect(changes).toBe(written)
    expect(Object.keys(files ?? {})).toHaveLength(q)
    expect(sumOf(files)).toBe(written)
    expect(await clientExtentOf(seqText(seq))).toEqual(files)
    await db.bulk(Array.from({ length: 100 }, (_, i) => JSON.stringify({ _id: `${written}-${i}` })))
  }
})

test('a database is never behind its own earlier sequence, nor behind the sequence of another database', async () => {
  needs('database identity')
  const [one, other] = [await freshDb('one'), await freshDb('other')]
  await one.bulk(Array.from({ length: 9 }, (_, i) => JSON.stringify({ _id: `a${i}` })))
  await other.put({ _id: 'b' })
  const early = (await other.info()).update_seq
  expect((await one.life(early)).isBehind).toBe(false)
  expect((await other.life((await one.info()).update_seq)).isBehind).toBe(false)
  await other.put({ _id: 'c' })
  expect((await other.life(early)).isBehind).toBe(false)
  const now = extentOf((await other.info()).update_seq)
  expect([isBehind(now, extentOf(early)), isBehind(extentOf(early), now)]).toEqual([false, true])
})

test('a text that is no CouchDB sequence yields only its number', async () => {
  const texts = fc.oneof(
    fc.string(),
    fc.tuple(fc.nat(), fc.base64String()).map(([changes, packed]) => `${changes}-${packed}`),
    fc.tuple(fc.nat(), fc.uint8Array()).map(([changes, bytes]) => {
      const packed = Buffer.from([131, 108, 0, 0, 0, 1, 104, 3, ...bytes]).toString('base64url')
      return `${changes}-${packed}`
    }),
  )
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const { changes, files } = extentOf(seqFrom(text))
      expect(changes).toBe(changesAt(seqFrom(text)))
      expect(files).toEqual({})
      for (const seq of Object.values(await clientExtentOf(text))) expect(seq).toBeGreaterThanOrEqual(0)
    }),
  )
})
