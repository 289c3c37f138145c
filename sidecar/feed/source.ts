import type { CallOptions, Life } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { isSeq } from '../couch/schemas.ts'
import type { Seq } from '../couch/documents.ts'

/** A feed of CouchDB that can be followed endlessly, line by line. */
export interface Source<Row extends { readonly seq: Seq }> {
  /** The request, for messages. */
  readonly name: string
  /**
   * The current life of the source, and whether the source is behind the checkpoint. In a new life, old checkpoints
   * are invalid. A checkpoint ahead of the source is invalid, too. Throws `CouchError`.
   */
  readonly life: (checkpoint: Seq | undefined, signal: AbortSignal) => Promise<Life>
  /** The bytes of the source's continuous feed. */
  readonly open: (query: SourceQuery, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>
  /** Reads many rows in one answer, at half the server's cost of single rows. Absent if the source has no pages. */
  readonly page?: ReadPage<Row>
  /** Throws `CouchError` with code `garbled` for a line that CouchDB does not write. */
  readonly parse: (request: string, line: string) => Line<Row>
}

/** Some rows, and the checkpoint after them. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly seq: Seq
  /** How many changes are left; undefined if the server does not report it. */
  readonly left: number | undefined
  /** Length of all rows as text. */
  readonly bytes: number
}

/** Reads at most `limit` rows after a checkpoint, in one short request. Throws `CouchError`. */
export type ReadPage<Row> = (since: Seq, limit: number, options: CallOptions) => Promise<Page<Row>>

export type SourceQuery = {
  readonly feed: 'continuous'
  readonly since: string
  readonly limit: number
  /** Milliseconds. */
  readonly heartbeat: number
}

export type Line<Row> =
  | { readonly kind: 'row'; readonly row: Row }
  /** The server closes the feed normally: the checkpoint to resume from, and the changes left, if reported. */
  | { readonly kind: 'last-seq'; readonly seq: Seq; readonly left: number | undefined }
  /** A heartbeat, or the newline that means "no more rows for now". */
  | { readonly kind: 'beat' }

/**
 * Parses one line of a continuous feed. `rowFrom` builds a row from the line's fields and length, or returns undefined
 * if they are not a row. Throws `CouchError` with code `garbled` for any other line.
 */
export function parseLine<Row>(
  request: string,
  line: string,
  rowFrom: (fields: Readonly<Record<string, unknown>> & { readonly seq: Seq }, bytes: number) => Row | undefined,
): Line<Row> {
  if (line.trim() === '') return { kind: 'beat' }
  const fields = parseObject(request, line)
  const row = hasSeq(fields) ? rowFrom(fields, line.length) : undefined
  if (row) return { kind: 'row', row }
  if (isSeq(fields.last_seq)) return { kind: 'last-seq', seq: fields.last_seq, left: countFrom(fields.pending) }
  throw garbled(request, line)
}

type Fields = Readonly<Record<string, unknown>>
export const hasSeq = (fields: Fields): fields is Fields & { readonly seq: Seq } => isSeq(fields.seq)

function parseObject(request: string, line: string): Record<string, unknown> {
  try {
    const row: unknown = JSON.parse(line)
    if (typeof row === 'object' && row !== null) return row as Record<string, unknown>
  } catch (cause) {
    throw garbled(request, line, cause)
  }
  throw garbled(request, line)
}

const countFrom = (value: unknown) => (typeof value === 'number' && value >= 0 ? value : undefined)
/** Leaf revisions from the `changes` of a row, the winner first. Undefined if `changes` holds no revisions. */
export function revsFrom(changes: unknown): readonly string[] | undefined {
  if (!Array.isArray(changes) || changes.length === 0) return undefined
  const revs = (changes as readonly unknown[]).map((leaf) => (leaf as { rev?: unknown } | null)?.rev)
  return revs.every((rev) => typeof rev === 'string') ? revs : undefined
}

const garbled = (request: string, line: string, cause?: unknown) =>
  new CouchError('garbled', { request, reason: `expected a row of changes, got ${line.slice(0, 80)}` }, { cause })

const NEWLINE = 0x0a

/**
 * Splits a stream of bytes into lines, and yields the complete lines of each chunk together. It works on bytes, so a
 * character split between two chunks is whole again before it is decoded. Bytes after the last newline are dropped:
 * half a row is no row.
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  let rest: Buffer[] = []
  for await (const bytes of chunks) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      rest.push(chunk.subarray(start, end))
      lines.push((rest.length === 1 ? rest[0]! : Buffer.concat(rest)).toString('utf8'))
      rest = []
      start = end + 1
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
    yield lines
  }
}
