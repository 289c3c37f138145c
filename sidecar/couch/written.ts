import type { BulkRow, Doc } from './documents.ts'
import { CouchError, type CouchErrorCode } from './couch-errors.ts'

/** Outcome of one write. A missing or garbled answer throws instead: the outcome is then unknown. */
export type Written =
  | { readonly kind: 'stored'; readonly rev: string }
  /** A cluster's 202: at least one copy has stored it, but not the quorum. A caller that must win has lost. */
  | { readonly kind: 'accepted'; readonly rev: string }
  | { readonly kind: 'conflict' }
  /** `validate_doc_update` or `_security` refuses the document, or it cannot be stored or serialized. */
  | { readonly kind: 'refused'; readonly code: CouchErrorCode; readonly reason: string }

/** The document as JSON text, or a refusal: a cycle or a BigInt has no JSON. */
export function textOf(doc: Doc): string | Written {
  if (typeof doc._id !== 'string' || doc._id === '') {
    return { kind: 'refused', code: 'bad_request', reason: `expected an _id, got ${JSON.stringify(doc._id)}` }
  }
  if (typeof doc.toJSON === 'function') {
    return { kind: 'refused', code: 'bad_request', reason: 'expected a document that JSON can represent' }
  }
  try {
    return JSON.stringify(doc)
  } catch (thrown) {
    return { kind: 'refused', code: 'bad_request', reason: (thrown as Error).message }
  }
}

/** The outcome that a row reports. Throws `CouchError` for a transient error: the outcome is then unknown. */
export function writtenFrom(row: BulkRow): Written {
  const { id, rev, error, reason = error ?? 'no reason given' } = row
  if (rev !== undefined && error === undefined) return { kind: row.accepted ? 'accepted' : 'stored', rev }
  if (error === 'conflict') return { kind: 'conflict' }
  const code = refusals.get(error)
  if (code) return { kind: 'refused', code, reason: BROKEN_GUARD.includes(error!) ? guardBroke(error!) : reason }
  const passing = error === undefined ? 'garbled' : (passingRows.get(error) ?? 'server')
  throw new CouchError(passing, { request: 'POST _bulk_docs', rowOf: id, ...(error && { error }), reason })
}

/** Errors of a `validate_doc_update` that crashes instead of answering. It crashes again on the same document. */
const BROKEN_GUARD = ['Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError']
const guardBroke = (error: string) => `a validate_doc_update function fails on it: it throws ${error}`

/**
 * Error words of rows that concern the document. `_bulk_docs` reports in them what a single PUT reports as a status
 * (`chttpd:error_info`). Every other word, known or not, concerns the server and is transient.
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
