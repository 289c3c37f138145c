import type { Couch } from '../../couch/client.ts'
import { seqFrom, seqText, type Seq } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { changesAt } from '../../couch/shard-seqs.ts'
import { hasSeq, parseLine } from '../../feed/source.ts'
import { updateFrom, type Update } from './update.ts'

/** The end of the feed at the time of the request. */
export const NOW = seqFrom('now')

/** Some of the rows after a sequence. */
export interface Page {
  readonly updates: readonly Update[]
  /** The sequence after these rows. */
  readonly seq: Seq
  /** Whether no more rows existed at the time of the read. */
  readonly isLast: boolean
}

/** Reads the existing rows of `global_changes`. All methods throw `CouchError`, or the signal's reason. */
export interface History {
  /** The next rows, at most `limit`. */
  page(since: Seq, limit: number, signal: AbortSignal): Promise<Page>
  /** Whether an older copy of the database was restored, which lacks changes from before this sequence. */
  isBehind(lastSeq: Seq, signal: AbortSignal): Promise<boolean>
  /** All rows, latest first, over one connection: in this order, CouchDB cannot resume from a sequence. */
  newestFirst(signal: AbortSignal): AsyncGenerator<readonly Update[], void>
  /** A text that differs after any change. On a cluster, it may also differ without a change. */
  state(signal: AbortSignal): Promise<string>
}

export function createHistory(couch: Couch, name: string): History {
  const request = `GET /${name}/_changes`
  const expected = (reason: string) => new CouchError('garbled', { request, reason: `expected ${reason}` })

  return {
    async page(since, limit, signal) {
      const query = { since: seqText(since), limit }
      const { results, last_seq } = await couch.db(name).changesPage(query, { signal })
      if (results.length > limit) return { updates: [], seq: since, isLast: false } // PouchDB takes a limit of 0 for 1
      const updates = results.map((row) => {
        const update = hasSeq(row) ? updateFrom(row) : undefined
        if (!update) throw expected('a row with an id and a revision')
        return update
      })
      return { updates, seq: last_seq, isLast: results.length < limit }
    },
    async isBehind(lastSeq, signal) {
      if (changesAt(lastSeq) === 0) return false // the beginning, or the end
      return (await couch.db(name).life(lastSeq, { signal })).isBehind
    },
    async *newestFirst(signal) {
      const { bytes } = await couch.stream({ db: name, path: '_changes', query: { descending: true }, signal })
      for await (const rows of splitRows(request, bytes)) {
        yield rows.map((row) => {
          const line = parseLine(request, row, updateFrom)
          if (line.kind !== 'row') throw expected('a row of changes')
          return line.row
        })
      }
    },
    async state(signal) {
      const { instance_start_time, update_seq } = await couch.db(name).info({ signal })
      return JSON.stringify([instance_start_time, update_seq])
    },
  }
}

/** Depth of a row: inside the list of rows, inside the answer. */
const ROW = 3

/**
 * Splits the answer to `_changes`, `{"results":[{…},{…}],…}`, into the texts of its rows. It yields the rows of each
 * chunk together, and never holds the whole answer. Line breaks do not count: CouchDB writes each row on a line,
 * PouchDB all rows on one. Throws `CouchError` with code `garbled` if the answer is incomplete.
 */
export async function* splitRows(request: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder()
  let text = ''
  let at = 0
  let start = 0
  let depth = 0
  let isString = false
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    const rows: string[] = []
    for (; at < text.length; at++) {
      const character = text[at]
      if (isString) {
        if (character === '\\') at++
        else if (character === '"') isString = false
      } else if (character === '"') isString = true
      else if (character === '{' || character === '[') {
        if (++depth === ROW) start = at
      } else if (character === '}' || character === ']') {
        if (depth-- === ROW) rows.push(text.slice(start, at + 1))
      }
    }
    const done = depth < ROW ? text.length : start
    text = text.slice(done)
    at -= done
    start = 0
    if (rows.length > 0) yield rows
  }
  if (depth !== 0) throw new CouchError('garbled', { request, reason: 'the answer broke off' })
}
