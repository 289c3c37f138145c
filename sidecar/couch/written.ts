import type { BulkRow, Doc } from './documents.ts'
import { CouchError, type CouchErrorCode } from './couch-errors.ts'

/** What became of one write. An answer that did not come, or came garbled, is thrown instead: the outcome is unknown then. */
export type Written =
  | { readonly kind: 'stored'; readonly rev: string }
  /** A cluster's 202: at least one copy has it, but not the quorum. A caller that needs to have won, has lost. */
  | { readonly kind: 'accepted'; readonly rev: string }
  | { readonly kind: 'conflict' }
  /** By `validate_doc_update`, `_security`, or because such a document cannot be stored or has no JSON. */
  | { readonly kind: 'refused'; readonly code: CouchErrorCode; readonly reason: string }

/** A cycle or a BigInt has no JSON. */
export function textOf(doc: Doc): string | Written {
  if (typeof doc._id !== 'string' || doc._id === '') {
    return { kind: 'refused', code: 'bad_request', reason: `expected an _id, got ${JSON.stringify(doc._id)}` }
  }
  if (typeof doc.toJSON === 'function') {
    return { kind: 'refused', code: 'bad_request', reason: 'expected a document, got one that is another as JSON' }
  }
  try {
    return JSON.stringify(doc)
  } catch (thrown) {
    return { kind: 'refused', code: 'bad_request', reason: (thrown as Error).message }
  }
}

/** Throws `CouchError` where the row tells of trouble that passes: what became of the write is unknown then. */
export function writtenFrom(row: BulkRow): Written {
  const { id, rev, error, reason = error ?? 'no reason given' } = row
  if (rev !== undefined && error === undefined) return { kind: row.accepted ? 'accepted' : 'stored', rev }
  if (error === 'conflict') return { kind: 'conflict' }
  const code = refusals.get(error)
  if (code) return { kind: 'refused', code, reason: BROKEN_GUARD.includes(error!) ? guardBroke(error!) : reason }
  const passing = error === undefined ? 'garbled' : (passingRows.get(error) ?? 'server')
  throw new CouchError(passing, { request: 'POST _bulk_docs', rowOf: id, ...(error && { error }), reason })
}

/** What a `validate_doc_update` throws that is no answer, but breaks: on the same document it does so again. */
const BROKEN_GUARD = ['Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError']
const guardBroke = (error: string) => `a validate_doc_update breaks on it: it throws ${error}`

/**
 * The words of rows that are an answer about the document: `_bulk_docs` says in them what a single PUT says in a status
 * (`chttpd:error_info`). Every other word, known or not, is of the server and passes.
 */
const refusals: ReadonlyMap<string | undefined, CouchErrorCode> = new Map([
  ['unauthorized', 'unauthorized'],
  ...['forbidden', 'partition_overflow'].map((word) => [word, 'forbidden'] as const),
  ...['document_too_large', 'attachment_too_large', 'too_large'].map((word) => [word, 'too_large'] as const),
  ...['bad_request', 'doc_validation', 'illegal_docid', 'illegal_partition', 'missing_stub', ...BROKEN_GUARD].map(
    (word) => [word, 'bad_request'] as const,
  ),
])

const passingRows: ReadonlyMap<string, CouchErrorCode> = new Map([
  ['timeout', 'timeout'],
  ['all_dbs_active', 'overloaded'],
  ['service unavailable', 'overloaded'],
])
