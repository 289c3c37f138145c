import { SidecarError } from '../../core/errors.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { writtenFrom } from '../../couch/written.ts'

/** Written together. */
const TOGETHER = 50

/** False if somebody else has written one of them at the same moment. Throws `CouchError`, and where one is refused. */
export async function writeCopies(database: Database, docs: readonly Doc[], call: CallOptions): Promise<boolean> {
  let isDone = true
  for (let from = 0; from < docs.length; from += TOGETHER) {
    const json = docs.slice(from, from + TOGETHER).map((doc) => JSON.stringify(doc))
    const rows = await database.bulk(json, call)
    for (const row of rows) {
      const written = writtenFrom(row)
      if (written.kind === 'refused') {
        throw new SidecarError('refused', `${database.name} refuses ${row.id}: ${written.reason}`)
      }
      isDone &&= written.kind !== 'conflict'
    }
  }
  return isDone
}
