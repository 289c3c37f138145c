import type { Database } from '../../couch/database.ts'
import { parseEventId, type DatabaseEvent } from '../event-documents.ts'
import { bucketOf, type Ledger } from './ledger.ts'
import { unsure } from './lookout.ts'

/**
 * Finds events that a restored older copy lacks, and marks them as not written: the next sweep writes them. The copy
 * may be of all events, or of one shard range. Throws `CouchError`.
 */
export async function findLost(database: Database, ledger: Ledger, signal: AbortSignal): Promise<void> {
  const read = async (event: DatabaseEvent) => {
    const docs = await database.withPrefix(`${event}:`, { signal })
    return new Set(docs.map(({ _id }) => parseEventId(_id)?.database))
  }
  const [created, updated, deleted] = [await read('created'), await read('updated'), await read('deleted')]
  for (const name of ledger.names()) {
    const known = ledger.get(name)
    if (!created.has(name)) ledger.set(name, unsure(known))
    else if (known && known.changes > 0 && !updated.has(name)) ledger.set(name, { ...known, changes: 0 })
  }
  for (const name of created) {
    if (name === undefined || deleted.has(name) || !ledger.has(bucketOf(name))) continue
    if (!ledger.get(name)) ledger.set(name, unsure(undefined)) // its deletion may be the lost event
  }
}
