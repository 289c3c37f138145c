import { expect, test } from 'vitest'
import { indexLines } from '../../sidecar/cli/index-lines.ts'
import type { Measured } from '../../sidecar/indexes/measure.ts'
import type { Note } from '../../sidecar/indexes/notes.ts'
import type { IndexRow } from '../../sidecar/indexes/rows.ts'

const measured = (database: string, lag: number, options: Partial<Measured> = {}): Measured => ({
  ...{ database, ddoc: '_design/sales', kind: 'view', name: 'by_total', rev: '1-a', seq: 10, lag, isRunning: false },
  ...options,
})
const row = (db_name: string, options: Partial<IndexRow> = {}): IndexRow => ({
  ...{ db_name, ddoc: '_design/sales', kind: 'view', index: null, lag_changes: 7, lag_seconds: 74.2 },
  ...{ building: false, error: null, checked_at: null, ...options },
})
const note = (...behind: IndexRow[]): Note => ({ worker: 'one', at: '2026-11-22T05:20:11.004Z', indexes: 40, behind })
const error = { code: 'server', reason: 'OS process timed out.', at: '2026-11-22T05:20:11.004Z' }

test('one line reports that all indexes are up to date', () => {
  expect(indexLines([measured('a', 0), measured('b', 0)], [])).toEqual(['2 of 2 in these databases are up to date'])
  expect(indexLines([], [])).toEqual(['no indexes in these databases'])
  expect(indexLines([measured('a', 0)], [note()])).toEqual([
    '1 of 1 in these databases are up to date; workers build 40 on the whole server, 0 of them stale or failing',
  ])
})

test('the lag is measured now, and its duration and error come from a worker’s note', () => {
  const lines = indexLines(
    [measured('a', 812), measured('b', 1, { isRunning: true }), measured('c', 0)],
    [note(row('a', { error }), row('c'))],
  )
  expect(lines.slice(1)).toEqual([
    'a  _design/sales  812 changes behind for 74 s: OS process timed out.',
    'b  _design/sales  1 change behind, being built',
  ])
})

test('indexes of other databases are shown from the notes of workers', () => {
  const text = { kind: 'search', index: 'text', lag_changes: null } as const
  expect(indexLines([measured('a', 0)], [note(row('other', text))]).slice(1)).toEqual([
    'other  _design/sales  text  stale for 74 s',
  ])
})

test('a server that does not report the state of its indexes is reported', () => {
  expect(indexLines(undefined, [])).toEqual(['the server does not report the state of its indexes'])
})
