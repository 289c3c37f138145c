import type { CallOptions, Life } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { isSeq } from '../couch/schemas.ts'
import type { Seq } from '../couch/documents.ts'

/** Something of CouchDB's that can be followed for ever, line by line. */
export interface Source<Row extends { readonly seq: Seq }> {
  /** The request, for messages. */
  readonly name: string
  /**
   * Of a new life, checkpoints of the old one mean nothing; of one that is behind a checkpoint, that checkpoint means nothing. Throws
   * `CouchError`.
   */
  readonly life: (checkpoint: Seq | undefined, signal: AbortSignal) => Promise<Life>
  /** The bytes of its continuous feed. */
  readonly open: (query: SourceQuery, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>
  /** Many rows in one answer, which costs the server half of what they do one by one; absent where it cannot be asked so. */
  readonly page?: ReadPage<Row>
  /** Throws `CouchError` with code `garbled` for a line that CouchDB does not write. */
  readonly parse: (request: string, line: string) => Line<Row>
}

/** Some rows, and the checkpoint after them. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly seq: Seq
  /** How many changes are left; undefined where the server does not say it. */
  readonly left: number | undefined
  /** Length of all rows as text. */
  readonly bytes: number
}

/** At most so many rows from a checkpoint on, in one short request. Throws `CouchError`. */
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
  /** The server closes the feed in good order; the checkpoint to go on from, and how many changes are left, if it says so. */
  | { readonly kind: 'last-seq'; readonly seq: Seq; readonly left: number | undefined }
  /** A heartbeat, or the newline that says "these are all for now". */
  | { readonly kind: 'beat' }

/**
 * Reads one line of a continuous feed. `rowFrom` makes a row of what the line holds and of its length, or undefined
 * where it is none. Throws `CouchError` with code `garbled` for anything else.
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
/** The `changes` of a row: the last revisions, the winner first. Undefined where they are none. */
export function revsFrom(changes: unknown): readonly string[] | undefined {
  if (!Array.isArray(changes) || changes.length === 0) return undefined
  const revs = (changes as readonly unknown[]).map((leaf) => (leaf as { rev?: unknown } | null)?.rev)
  return revs.every((rev) => typeof rev === 'string') ? revs : undefined
}

const garbled = (request: string, line: string, cause?: unknown) =>
  new CouchError('garbled', { request, reason: `expected a row of changes, got ${line.slice(0, 80)}` }, { cause })

const NEWLINE = 0x0a

/**
 * Cuts a stream of bytes into lines, each chunk's complete lines together. Works on bytes, so a character split
 * between two chunks is whole again before it is decoded. What follows the last newline is not a line and is dropped:
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
