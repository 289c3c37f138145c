import type { Couch } from '../../couch/client.ts'
import { seqFrom, seqText, type Seq } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { changesAt } from '../../couch/shard-seqs.ts'
import { hasSeq, parseLine } from '../../feed/source.ts'
import { updateFrom, type Update } from './update.ts'

/** The end of the feed, wherever that is when it is asked for. */
export const NOW = seqFrom('now')

/** Some of the rows after a sequence. */
export interface Page {
  readonly updates: readonly Update[]
  /** The sequence after them. */
  readonly seq: Seq
  /** There were no more rows when it was read. */
  readonly isLast: boolean
}

/** What is in `global_changes` already. Everything throws `CouchError`, or the signal's reason. */
export interface History {
  /** The next rows, so many at the most. */
  page(since: Seq, limit: number, signal: AbortSignal): Promise<Page>
  /** Whether an older copy of the database was put back, that does not have what was before this sequence. */
  isBehind(lastSeq: Seq, signal: AbortSignal): Promise<boolean>
  /** All rows, the last one first, as they come over one connection: CouchDB cannot go on from a sequence in this order. */
  newestFirst(signal: AbortSignal): AsyncGenerator<readonly Update[], void>
  /** Another text when anything has changed. On a cluster also now and then when nothing has. */
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

/** How deep a row is: in the list of rows, in the whole. */
const ROW = 3

/**
 * Cuts the answer to `_changes`, `{"results":[{…},{…}],…}`, into the texts of its rows, those of a chunk together,
 * without ever having all of it. Line breaks mean nothing: CouchDB writes a row on each line, PouchDB all on one. Throws
 * `CouchError` with code `garbled` where the answer is not whole.
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
