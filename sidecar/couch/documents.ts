/** JSON as CouchDB keeps it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/** A document as it comes from CouchDB. What a client wrote into it can be anything: look before you use it. */
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

/** One end of a document's history, with the way to it: hashes of its revisions, the last one first. */
export interface Leaf extends StoredDoc {
  readonly _revisions: { readonly start: number; readonly ids: readonly string[] }
}

declare const opaque: unique symbol
/**
 * A place in a `_changes` feed. Opaque: two of them can neither be ordered nor told to be the same place (the same
 * state of a cluster has many spellings), so the type has no operation but being handed back to the server. Only
 * `shard-seqs.ts` looks into it, to find what a database has lost.
 */
export type Seq = { readonly [opaque]: 'seq' }

/** The beginning of every feed. */
export const SEQ_ZERO = '0' as unknown as Seq

/** The text of a sequence, for a request or for storing it; PouchDB's are numbers. */
export const seqText = (seq: Seq): string => `${seq as unknown as string}`
export const seqFrom = (stored: string | number): Seq => stored as unknown as Seq

/** One row of `_bulk_docs`. `accepted` (a cluster's 202): stored by fewer copies than the quorum. */
export interface BulkRow {
  readonly id: string
  readonly rev?: string
  readonly ok?: boolean
  readonly accepted?: boolean
  readonly error?: string
  readonly reason?: string
}

/** An answer of `_changes`. What stands in a row is looked at before it is used. */
export interface ChangesPage {
  /** A row has no sequence where `seq_interval` leaves it out. */
  readonly results: readonly (Readonly<Record<string, unknown>> & { readonly seq: Seq | null })[]
  readonly last_seq: Seq
  /** CouchDB only. */
  readonly pending?: number
}

export interface DbInfo {
  readonly db_name: string
  readonly doc_count: number
  readonly update_seq: Seq
  /** Changes when a database is deleted and made again. Seconds on CouchDB: two lives within one second look alike. */
  readonly instance_start_time: string
  /** CouchDB only. `n`: how many copies there are of each document; `q`: in how many shards the documents are. */
  readonly cluster?: { readonly n: number; readonly q?: number }
}

/** The documents of one database, as a handler's `ctx` offers them. */
export interface Documents {
  find(id: string): Promise<StoredDoc | undefined>
  /** Throws `CouchError` with code `conflict` if it has changed. */
  put(doc: Doc): Promise<unknown>
}

/** As CouchDB orders leaves that are not deleted: it shows the last. */
export function compareRevs(a: string, b: string): number {
  const generations = parseInt(a) - parseInt(b)
  return generations !== 0 ? generations : a < b ? -1 : a > b ? 1 : 0
}
