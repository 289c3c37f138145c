import { expect, test } from 'vitest'
import { splitRows } from '../../../sidecar/global-changes/reading/history.ts'

const rows = [
  '{"seq":"2-g1","id":"updated:a","changes":[{"rev":"1-967a"}]}',
  '{"seq":"1-g1","id":"}],{\\"[ü🐘\\\\","changes":[{"rev":"1-967a"},{"rev":"1-abcd"}],"deleted":true}',
  '{"seq":null,"id":"","changes":[]}',
]

const answers: [string, string][] = [
  ['CouchDB', `{"results":[\n${rows.join(',\r\n')}\n],\n"last_seq":"3-g1","pending":0}\n`],
  ['PouchDB', `{"results":[${rows.join()}],"last_seq":3}`],
]

async function split(text: string, bytesAtOnce: number): Promise<string[]> {
  const bytes = new TextEncoder().encode(text)
  const chunks = async function* () {
    for (let at = 0; at < bytes.length; at += bytesAtOnce) yield bytes.subarray(at, at + bytesAtOnce)
  }
  const found: string[] = []
  for await (const some of splitRows('GET /db/_changes', chunks())) found.push(...some)
  return found
}

test.each(answers)('all rows of an answer of %s are found, for any chunk size', async (_, text) => {
  for (const bytesAtOnce of [1, 2, 3, 7, 50, 10_000]) expect(await split(text, bytesAtOnce)).toEqual(rows)
})

test('an answer without rows gives no row', async () => {
  expect(await split('{"results":[\n\n],\n"last_seq":"0","pending":0}\n', 5)).toEqual([])
})

test.each(answers)('a truncated answer of %s is rejected', async (_, text) => {
  await expect(split(text.slice(0, text.indexOf(rows[2]!)), 50)).rejects.toMatchObject({ code: 'garbled' })
})
