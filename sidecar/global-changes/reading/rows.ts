import { CouchError } from '../../couch/errors.ts'

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
