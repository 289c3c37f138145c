import { expect, test } from 'vitest'
import { seqFrom } from '../../../sidecar/couch/documents.ts'
import { Gathered } from '../../../sidecar/global-changes/reading/reader.ts'
import { Update } from '../../../sidecar/global-changes/reading/update.ts'

let seq = 0
const update = (database: string, rev: string) =>
  new Update({ id: `updated:${database}`, rev, seq: seqFrom(`${++seq}-g1`), deleted: false })

const namesOf = (updates: readonly Update[]) => updates.map(({ id, rev }) => `${id} ${rev}`)

function gather(...updates: Update[]) {
  const gathered = new Gathered()
  for (const update of updates) gathered.add(update)
  return gathered
}

test('the later of two rows for a document replaces the earlier one, at its own position', () => {
  const gathered = gather(update('a', '1-x'), update('b', '1-x'), update('a', '2-x'))
  expect(gathered.size).toBe(2)
  expect(namesOf(gathered.take(1)), 'the row of a is now after the row of b').toEqual(['updated:b 1-x'])
  expect(namesOf(gathered.take(1))).toEqual(['updated:a 2-x'])
  expect(gathered.size).toBe(0)
})

test('a row that a page contains is not repeated, in either order of arrival', () => {
  const gathered = gather(update('a', '2-x'), update('b', '2-x'), update('c', '2-x'))
  gathered.skip([update('a', '2-x'), update('b', '3-x'), update('c', '1-x'), update('d', '2-x')])
  for (const rev of ['1-x', '2-x', '3-x']) gathered.add(update('d', rev))
  expect(namesOf(gathered.take(10))).toEqual(['updated:c 2-x', 'updated:d 3-x'])
})

test('the latest thousand rows of pages are remembered', () => {
  const gathered = gather()
  const rows = Array.from({ length: 1001 }, (_, i) => update(`db${i}`, '1-x'))
  gathered.skip(rows)
  for (const row of rows) gathered.add(row)
  expect(namesOf(gathered.take(10))).toEqual(['updated:db0 1-x'])
})
