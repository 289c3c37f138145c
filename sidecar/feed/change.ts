import type { Database } from '../couch/database.ts'
import type { Seq, StoredDoc } from '../couch/documents.ts'
import { parseLine, type Source } from './source.ts'

/** One row of a `_changes` feed read with its document. */
export interface Change {
  readonly seq: Seq
  readonly id: string
  readonly deleted: boolean
  /** The winning revision's document; absent if the server could not give it. */
  readonly doc: StoredDoc | undefined
  /** Length of the row as text: what it costs to keep. */
  readonly bytes: number
}

/** The changes of a database, with its documents. */
export const changesOf = (database: Database): Source<Change> => ({
  name: `GET /${database.name}/_changes`,
  life: async (signal) => String((await database.info({ signal })).instance_start_time),
  open: (query, signal) => database.changes({ ...query, include_docs: true, conflicts: true }, signal),
  parse: (request, line) =>
    parseLine(request, line, ({ id, seq, deleted, doc }, bytes) =>
      typeof id === 'string'
        ? { seq, id, deleted: deleted === true, doc: (doc as StoredDoc | null | undefined) ?? undefined, bytes }
        : undefined,
    ),
})
