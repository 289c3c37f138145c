import type { BulkRow, Doc } from './documents.ts'
import { codeOf, type CouchErrorCode } from './errors.ts'

/** What became of one write. An answer that did not come, or came garbled, is thrown instead: nobody knows then. */
export type Written =
  | { readonly kind: 'stored'; readonly rev: string }
  /** A cluster's 202: at least one copy has it, but not the quorum. Whoever needs to have won, has lost. */
  | { readonly kind: 'accepted'; readonly rev: string }
  | { readonly kind: 'conflict' }
  /** By `validate_doc_update`, `_security`, or because such a document cannot be stored or has no JSON. */
  | { readonly kind: 'refused'; readonly code: CouchErrorCode; readonly reason: string }

/** A cycle or a BigInt has no JSON. */
export function textOf(doc: Doc): string | Written {
  if (typeof doc._id !== 'string' || doc._id === '') {
    return { kind: 'refused', code: 'bad_request', reason: `expected an _id, got ${JSON.stringify(doc._id)}` }
  }
  try {
    return JSON.stringify(doc)
  } catch (thrown) {
    return { kind: 'refused', code: 'bad_request', reason: (thrown as Error).message }
  }
}

export function writtenFrom(row: BulkRow): Written {
  if (row.rev !== undefined && row.error === undefined) {
    return { kind: row.accepted ? 'accepted' : 'stored', rev: row.rev }
  }
  if (row.error === 'conflict') return { kind: 'conflict' }
  const reason = row.reason ?? row.error ?? 'no reason given'
  return { kind: 'refused', code: statusOfRow[row.error ?? ''] ?? codeOf(400), reason }
}

/** `_bulk_docs` says in a word what a single PUT says in a status. */
const statusOfRow: Readonly<Record<string, CouchErrorCode>> = {
  forbidden: 'forbidden',
  unauthorized: 'unauthorized',
  document_too_large: 'too_large',
}
