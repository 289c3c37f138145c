import { z } from 'zod'
import type { Life } from '../couch/database.ts'
import { CouchError } from '../couch/errors.ts'
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
  /** Throws `CouchError` with code `garbled` for a line that CouchDB does not write. */
  readonly parse: (request: string, line: string) => Line<Row>
}

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
  rowFrom: (fields: Record<string, unknown> & { readonly seq: Seq }, bytes: number) => Row | undefined,
): Line<Row> {
  if (line.trim() === '') return { kind: 'beat' }
  const fields = parseObject(request, line)
  const row = isSeq(fields.seq) ? rowFrom({ ...fields, seq: fields.seq }, line.length) : undefined
  if (row) return { kind: 'row', row }
  if (isSeq(fields.last_seq)) return { kind: 'last-seq', seq: fields.last_seq, left: countFrom(fields.pending) }
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

const countFrom = (value: unknown) => (typeof value === 'number' && value >= 0 ? value : undefined)
/** The `changes` of a row: the last revisions, the winner first. Undefined where they are none. */
export function revsFrom(changes: unknown): readonly string[] | undefined {
  const { success, data } = leaves.safeParse(changes)
  return success ? data.map(({ rev }) => rev) : undefined
}

const leaves = z.array(z.object({ rev: z.string() })).min(1)

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
