import type { Database } from '../couch/database.ts'
import type { Seq } from '../couch/documents.ts'
import { parseLine, type Source } from './source.ts'

/**
 * The changes of a few documents, without saying of which. CouchDB finds up to a hundred by their ids, so that following
 * them from the beginning costs no more than from the end; PouchDB looks through all changes.
 */
export const changesOfFew = (database: Database, ids: readonly string[]): Source<{ readonly seq: Seq }> => ({
  name: `GET /${database.name}/_changes`,
  life: (checkpoint, signal) => database.life(checkpoint, { signal }),
  open: (query, signal) => database.changes({ ...query, filter: '_doc_ids', doc_ids: JSON.stringify(ids) }, signal),
  parse: (request, line) => parseLine(request, line, ({ seq }) => ({ seq })),
})
