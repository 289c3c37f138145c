/**
 * Schemas of CouchDB's answers, limited to the fields in use. Every answer is checked. A proxy, a server that only
 * resembles CouchDB, or a failing server may send 200 with any body.
 */
import { z } from 'zod'
import type { BulkRow, ChangesPage, DbInfo, Leaf, Seq, StoredDoc } from './documents.ts'

export type Schema<T> = z.ZodType<T>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

export const isStoredDoc = (value: unknown): value is StoredDoc =>
  isObject(value) && typeof value._id === 'string' && typeof value._rev === 'string'
const isLeaf = (value: unknown): value is Leaf => {
  const revisions = isStoredDoc(value) ? value._revisions : undefined
  return isObject(revisions) && typeof revisions.start === 'number' && Array.isArray(revisions.ids)
}

/** Documents are not copied: the code that uses a client's field checks it. */
export const storedDoc: Schema<StoredDoc> = z.custom<StoredDoc>(isStoredDoc, 'expected a document with _id and _rev')
const leaf = z.custom<Leaf>(isLeaf, 'expected a document with _id, _rev and _revisions')

/** PouchDB's sequences are numbers. */
export const isSeq = (value: unknown): value is Seq => typeof value === 'string' || typeof value === 'number'
export const seq = z.custom<Seq>(isSeq, 'expected a sequence')

export const anything: Schema<unknown> = z.unknown()

export const names: Schema<string[]> = z.array(z.string())

/** The answer of `GET /`, which a proxy may hide. */
export const server = z.object({
  couchdb: z.string().exactOptional(),
  version: z.string().exactOptional(),
  features: names.exactOptional(),
})

/** An answer that only confirms success. */
export const done = z.object({ ok: z.literal(true) })
export const stored = z.object({ rev: z.string() })

export const dbInfo: Schema<DbInfo> = z.looseObject({
  db_name: z.string(),
  doc_count: z.number(),
  update_seq: seq,
  instance_start_time: z.string(),
  cluster: z.looseObject({ n: z.number(), q: z.number().exactOptional() }).exactOptional(),
})

/** A `validate_doc_update` may give any JSON as its reason. */
const reason = z.unknown().transform((value) => (typeof value === 'string' ? value : JSON.stringify(value)))

export const bulkRows: Schema<BulkRow[]> = z.array(
  z.object({
    id: z.string(),
    rev: z.string().exactOptional(),
    ok: z.boolean().exactOptional(),
    accepted: z.boolean().exactOptional(),
    error: z.string().exactOptional(),
    reason: reason.exactOptional(),
  }),
)

export const leaves: Schema<{ ok?: Leaf }[]> = z.array(z.object({ ok: leaf.exactOptional() }))

/** `_bulk_get` without named revisions. */
export const bulkGot = z.object({
  results: z.array(
    z.object({
      id: z.string(),
      docs: z.array(
        z.object({
          ok: storedDoc.exactOptional(),
          error: z.object({ error: z.string(), reason }).exactOptional(),
        }),
      ),
    }),
  ),
})

/** The reader of a row checks its fields. */
export const changesPage: Schema<ChangesPage> = z.object({
  results: z.array(
    z.custom<ChangesPage['results'][number]>(
      (row) => isObject(row) && (isSeq(row.seq) || row.seq === null),
      'expected a row',
    ),
  ),
  last_seq: seq,
  pending: z.number().exactOptional(),
})

/** `_all_docs`, also by keys, of which some may be missing. */
export const allDocs = z.object({
  rows: z.array(z.object({ key: z.string(), doc: storedDoc.nullish(), error: z.string().exactOptional() })),
})

/** Rows of a view, each of this schema. */
export const rowsOf = <Row>(row: Schema<Row>): Schema<{ rows: Row[] }> => z.object({ rows: z.array(row) })
