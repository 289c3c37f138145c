import nano from 'nano'
import type { Couch } from '../sidecar/couch/client.ts'
import type { Database } from '../sidecar/couch/database.ts'
import type { BulkRow, StoredDoc } from '../sidecar/couch/documents.ts'
import { answerOf } from '../test/support/answers.ts'

/** Reads every pending document, as a feed gives them. */
async function readAll(couch: Couch, { name }: Database): Promise<StoredDoc[]> {
  const query = { include_docs: true }
  const { results } = await answerOf<{ results: { doc: StoredDoc }[] }>(couch, { db: name, path: '_changes', query })
  return results.map(({ doc }) => doc).filter((doc) => doc.type === 'order')
}

/**
 * The best rate of this server: read with documents, then write all of them back with `_bulk_docs` of 1,000. One write
 * imitates a safe handler, two writes an unsafe one.
 */
export async function runLimit(couch: Couch, database: Database, writes: 1 | 2): Promise<void> {
  const docs = await readAll(couch, database)
  for (let round = 1; round <= writes; round++) {
    for (let from = 0; from < docs.length; from += 1000) {
      const batch = docs.slice(from, from + 1000)
      const state = round === writes ? 'invoiced' : 'paid'
      const next = batch.map((doc) => ({ ...doc, state, round }))
      const rows = await database.bulk(next.map((doc) => JSON.stringify(doc)))
      rows.forEach((row, i) => (docs[from + i] = { ...next[i]!, _rev: revOf(row) }))
    }
  }
}

/** The usual loop: read the feed, then for each document a claim by PUT and a save by PUT, 16 at a time. */
export async function runLoop(couch: Couch, url: string, { name }: Database): Promise<void> {
  const docs = await readAll(couch, couch.db(name))
  const db = nano(url).use<Record<string, unknown>>(name)
  let next = 0
  const worker = async () => {
    for (let doc = docs[next++]; doc; doc = docs[next++]) {
      const claimed = await db.insert({ ...doc, claimed_by: 'loop' })
      await db.insert({ ...doc, _rev: claimed.rev, state: 'invoiced' })
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

function revOf(row: BulkRow): string {
  if (row.rev === undefined) throw new Error(`${row.id}: ${row.error}: ${row.reason}`)
  return row.rev
}
