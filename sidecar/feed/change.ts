import type { Database } from '../couch/database.ts'
import type { Seq, StoredDoc } from '../couch/documents.ts'
import { parseLine, type Source } from './source.ts'

/** One row of a `_changes` feed. */
export interface Change {
  readonly seq: Seq
  readonly id: string
  /** The winning revision. */
  readonly rev: string
  /** There is, or was, another last revision: one that is deleted counts. */
  readonly branched: boolean
  readonly deleted: boolean
  /** The winning revision's document; absent if it was not asked for, or the server could not give it. */
  readonly doc: StoredDoc | undefined
  /** Length of the row as text: what it costs to keep. */
  readonly bytes: number
}

const LEAVES = { style: 'all_docs' }
const DOCS = { ...LEAVES, include_docs: true, conflicts: true }

/** The changes of a database, with its documents unless `withDocs` says otherwise when a connection is opened. */
export const changesOf = (database: Database, withDocs: () => boolean = () => true): Source<Change> => ({
  name: `GET /${database.name}/_changes`,
  life: async (signal) => String((await database.info({ signal })).instance_start_time),
  open: (query, signal) => database.changes({ ...query, ...(withDocs() ? DOCS : LEAVES) }, signal),
  parse: (request, line) =>
    parseLine(request, line, ({ id, seq, deleted, changes, doc }, bytes) => {
      const revs = (changes as readonly { readonly rev?: unknown }[] | undefined)?.map(({ rev }) => rev) ?? []
      const rev = revs[0] // CouchDB names the winner first
      if (typeof id !== 'string' || typeof rev !== 'string') return undefined
      const known = (doc as StoredDoc | null | undefined) ?? undefined
      return { seq, id, rev, branched: revs.length > 1, deleted: deleted === true, doc: known, bytes }
    }),
})
