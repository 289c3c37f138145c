import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { changesOf } from '../../sidecar/feed/change.ts'
import { splitLines } from '../../sidecar/feed/source.ts'

const { parse } = changesOf({ name: 'any' } as Database)

async function linesOf(text: string, chunkBytes: number): Promise<string[]> {
  const bytes = Buffer.from(text)
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  const lines: string[] = []
  for await (const some of splitLines(chunks())) lines.push(...some)
  return lines
}

test.each([1, 2, 3, 5, 1000])('lines are whole when chunks of %i bytes cut through characters', async (size) => {
  expect(await linesOf('{"name":"Jürgen 🐘"}\n\n{"x":1}\nhalf a row', size)).toEqual([
    '{"name":"Jürgen 🐘"}',
    '',
    '{"x":1}',
  ])
})

test('the parser reads the lines that CouchDB writes', () => {
  const doc = { _id: 'a', _rev: '1-x' }
  const row = JSON.stringify({ seq: '3-g1', id: 'a', changes: [{ rev: '1-x' }], doc })
  expect(parse('r', row)).toEqual({
    kind: 'row',
    row: { seq: '3-g1', id: 'a', rev: '1-x', branched: false, deleted: false, doc, bytes: row.length },
  })
  const bare = JSON.stringify({ seq: '4-g1', id: 'a', changes: [{ rev: '2-y' }, { rev: '2-x' }] })
  expect(parse('r', bare)).toMatchObject({ row: { rev: '2-y', branched: true, doc: undefined } })
  expect(parse('r', '')).toEqual({ kind: 'beat' })
  expect(parse('r', '{"last_seq":"9-g1","pending":0}')).toEqual({ kind: 'last-seq', seq: '9-g1', left: 0 })
})

test.each(['<html>', '{"error":"timeout"}', '[1]', 'null', '{"seq":"1", "id"', '42'])(
  'the parser refuses %s as garbled',
  (line) => {
    try {
      parse('r', line)
      expect.unreachable()
    } catch (thrown) {
      expect(isCouchError(thrown, 'garbled')).toBe(true)
    }
  },
)
