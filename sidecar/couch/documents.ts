/** JSON as CouchDB stores it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/** A document as it comes from CouchDB. A client may have written any value into it: check a field before use. */
export interface Doc {
  readonly _id: string
  readonly _rev?: string
  readonly _deleted?: boolean
  readonly _conflicts?: readonly string[]
  readonly [field: string]: unknown
}

export interface StoredDoc extends Doc {
  readonly _rev: string
}

/** A leaf revision of a document, with its history: the hashes of its revisions, newest first. */
export interface Leaf extends StoredDoc {
  readonly _revisions: { readonly start: number; readonly ids: readonly string[] }
}

declare const opaque: unique symbol
/**
 * A position in a `_changes` feed. Opaque: two sequences can be neither ordered nor compared for equality, because one
 * state of a cluster has many spellings. The only operation is to send a sequence back to the server. Only
 * `shard-seqs.ts` decodes sequences, to detect lost changes.
 */
export type Seq = { readonly [opaque]: 'seq' }

/** The beginning of every feed. */
export const SEQ_ZERO = '0' as unknown as Seq

/** The text of a sequence, for a request or for storage. PouchDB's sequences are numbers. */
export const seqText = (seq: Seq): string => `${seq as unknown as string}`
export const seqFrom = (stored: string | number): Seq => stored as unknown as Seq

/** One row of `_bulk_docs`. `accepted` (a cluster's 202): fewer copies than the quorum have stored the document. */
export interface BulkRow {
  readonly id: string
  readonly rev?: string
  readonly ok?: boolean
  readonly accepted?: boolean
  readonly error?: string
  readonly reason?: string
}

/** An answer of `_changes`. The reader checks the fields of a row before use. */
export interface ChangesPage {
  /** `seq` is null in rows for which `seq_interval` omits the sequence. */
  readonly results: readonly (Readonly<Record<string, unknown>> & { readonly seq: Seq | null })[]
  readonly last_seq: Seq
  /** CouchDB only. */
  readonly pending?: number
}

export interface DbInfo {
  readonly db_name: string
  readonly doc_count: number
  readonly update_seq: Seq
  /** Changes when a database is deleted and recreated. CouchDB uses seconds: both values may be equal within one. */
  readonly instance_start_time: string
  /** CouchDB only. `n`: copies of each document; `q`: number of shards. */
  readonly cluster?: { readonly n: number; readonly q?: number }
}

/** The documents of one database, as a handler's `ctx` offers them. */
export interface Documents {
  find(id: string): Promise<StoredDoc | undefined>
  /** Throws `CouchError` with code `conflict` if the document has changed. */
  put(doc: Doc): Promise<unknown>
}

/** Orders leaves that are not deleted as CouchDB does: CouchDB shows the last one. */
export function compareRevs(a: string, b: string): number {
  const generations = parseInt(a) - parseInt(b)
  return generations !== 0 ? generations : a < b ? -1 : a > b ? 1 : 0
}
