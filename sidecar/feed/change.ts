import { CouchError } from '../couch/errors.ts'
import type { Seq, StoredDoc } from '../couch/documents.ts'

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

export type Line =
  | { readonly kind: 'change'; readonly change: Change }
  /** The server closes the feed in good order; the place to go on from. */
  | { readonly kind: 'last-seq'; readonly seq: Seq }
  /** A heartbeat, or the newline that says "these are all for now". */
  | { readonly kind: 'beat' }

/** Reads one line of a continuous feed. Throws `CouchError` with code `garbled` for anything CouchDB does not say. */
export function parseLine(request: string, line: string): Line {
  if (line.trim() === '') return { kind: 'beat' }
  const row = parseObject(request, line)
  if (typeof row.id === 'string' && isSeq(row.seq)) {
    const doc = row.doc as StoredDoc | null | undefined
    return {
      kind: 'change',
      change: { seq: row.seq, id: row.id, deleted: row.deleted === true, doc: doc ?? undefined, bytes: line.length },
    }
  }
  if (isSeq(row.last_seq)) return { kind: 'last-seq', seq: row.last_seq }
  throw garbled(request, line)
}

function parseObject(request: string, line: string): Record<string, unknown> {
  try {
    const row: unknown = JSON.parse(line)
    if (typeof row === 'object' && row !== null) return row as Record<string, unknown>
  } catch (cause) {
    throw garbled(request, line, cause)
  }
  throw garbled(request, line)
}

const isSeq = (value: unknown): value is Seq => typeof value === 'string' || typeof value === 'number'

const garbled = (request: string, line: string, cause?: unknown) =>
  new CouchError('garbled', { request, reason: `expected a row of changes, got ${line.slice(0, 80)}` }, { cause })
