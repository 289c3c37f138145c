import type { Database } from '../couch/database.ts'
import { seqText, type Seq, type StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { isStoredDoc } from '../couch/schemas.ts'
import { parseLine, revsFrom, type ReadPage, type Source } from './source.ts'

/** One row of a `_changes` feed. */
export interface Change {
  readonly seq: Seq
  readonly id: string
  /** The winning revision. */
  readonly rev: string
  /** The document has more than one leaf revision; deleted leaves count. */
  readonly branched: boolean
  readonly deleted: boolean
  /** The winning revision's document; undefined if not requested, or if the server could not send it. */
  readonly doc: StoredDoc | undefined
  /** Length of the row as text: its cost in memory. */
  readonly bytes: number
}

const LEAVES = { style: 'all_docs' }
const DOCS = { ...LEAVES, include_docs: true, conflicts: true }

/** The changes of a database. `withDocs` (each connection) and `pagesWithDocs` (each page) decide on documents. */
export const changesOf = (
  database: Database,
  withDocs: () => boolean = () => true,
  pagesWithDocs = withDocs,
): Source<Change> => ({
  name: `GET /${database.name}/_changes`,
  life: (checkpoint, signal) => database.life(checkpoint, { signal }),
  open: (query, signal) => database.changes({ ...query, ...(withDocs() ? DOCS : LEAVES) }, signal),
  page: pagesOf(database, pagesWithDocs),
  parse: (request, line) => parseLine(request, line, changeFrom),
})

type Fields = Readonly<Record<string, unknown>> & { readonly seq: Seq }

function changeFrom({ id, seq, deleted, changes, doc }: Fields, bytes: number): Change | undefined {
  const revs = revsFrom(changes)
  const known = doc ?? undefined
  if (typeof id !== 'string' || !revs || !(known === undefined || isStoredDoc(known))) return undefined
  return { seq, id, rev: revs[0]!, branched: revs.length > 1, deleted: deleted === true, doc: known, bytes }
}

/** The changes of a database in pages, with documents unless `withDocs` returns false. */
export const pagesOf =
  (database: Database, withDocs: () => boolean = () => true): ReadPage<Change> =>
  async (since, limit, options) => {
    // A sequence in each row would double the server's cost.
    const query = { ...(withDocs() ? DOCS : LEAVES), since: seqText(since), limit, seq_interval: limit }
    const { results, last_seq, pending } = await database.changesPage(query, options)
    const rows = results.map((row, i) => {
      const seq = i < results.length - 1 ? since : last_seq // only the last row moves the checkpoint
      const change = changeFrom({ ...row, seq }, JSON.stringify(row).length)
      if (change) return change
      throw new CouchError('garbled', { request: `GET /${database.name}/_changes`, reason: 'expected rows of changes' })
    })
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0)
    return { rows, seq: last_seq, left: pending, bytes }
  }
