import type { Database } from '../couch/database.ts'
import { seqText, type Seq, type StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/errors.ts'
import { isStoredDoc } from '../couch/schemas.ts'
import { parseLine, revsFrom, type Source } from './source.ts'

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
  life: (checkpoint, signal) => database.life(checkpoint, { signal }),
  open: (query, signal) => database.changes({ ...query, ...(withDocs() ? DOCS : LEAVES) }, signal),
  parse: (request, line) => parseLine(request, line, changeFrom),
})

type Fields = Readonly<Record<string, unknown>> & { readonly seq: Seq }

function changeFrom({ id, seq, deleted, changes, doc }: Fields, bytes: number): Change | undefined {
  const revs = revsFrom(changes)
  const known = doc ?? undefined
  if (typeof id !== 'string' || !revs || !(known === undefined || isStoredDoc(known))) return undefined
  return { seq, id, rev: revs[0]!, branched: revs.length > 1, deleted: deleted === true, doc: known, bytes }
}

/** Some rows of a feed, and the checkpoint after them. */
export interface Page {
  readonly rows: readonly Change[]
  readonly seq: Seq
  /** How many changes are left; undefined where the server does not say it. */
  readonly left: number | undefined
}

/** At most so many changes from a checkpoint on, with their documents, in one short request. Throws `CouchError`. */
export type ReadPage = (since: Seq, limit: number, signal: AbortSignal) => Promise<Page>

export const pagesOf =
  (database: Database): ReadPage =>
  async (since, limit, signal) => {
    const answer = await database.changesPage({ ...DOCS, since: seqText(since), limit }, { signal })
    const { results, last_seq, pending } = answer
    const rows = results.map((row) => {
      const change = changeFrom(row, JSON.stringify(row).length)
      if (change) return change
      throw new CouchError('garbled', { request: `GET /${database.name}/_changes`, reason: 'expected rows of changes' })
    })
    return { rows, seq: last_seq, left: pending }
  }
