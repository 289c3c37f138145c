import { expect, test } from 'vitest'
import { countDatabases } from '../../sidecar/cli/status.ts'
import { tableOf, tableOfMany } from '../../sidecar/cli/state-table.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { installDocstate } from '../docstate/install.ts'

const count = (type: string, state: string, status: string, count: number) => ({ type, state, status, count })

test('the documents of one database are shown as a table', () => {
  const counts = [count('device', 'active', 'handled', 12), count('order', 'paid', 'parked', 1)]
  expect(tableOf({ database: 'control', counts })).toBe(`control
  device  active  12  handled
  order   paid     1  parked (a worker was lost: check the effect, then run "couchdb-sidecar retry")`)
  expect(tableOf({ database: 'a', counts: [] })).toBe('a\n  no documents with a type and a state')
  expect(tableOf({ database: 'a', counts: undefined })).toMatch(/^a\n {2}not deployed yet/)
})

test('documents of many databases share one table, which names databases that need attention', () => {
  const counted = Array.from({ length: 2000 }, (_, i) => ({
    database: `userdb-${i}`,
    counts: [count('channel', 'ready', 'ready', 2), ...(i < 5 ? [count('channel', 'error', 'ready', 1)] : [])],
  }))
  const missing = { database: 'userdb-x', counts: undefined }
  expect(tableOfMany('userdb-*', [...counted, missing])).toBe(`userdb-* (2001 databases)
  channel  error     5  in userdb-0, userdb-1, userdb-2 and 2 more
  channel  ready  4000
  1 of them is not deployed yet: run "couchdb-sidecar deploy", or start the sidecar`)
  expect(tableOfMany('userdb-*', [missing])).toContain('no documents with a type and a state')
})

test('databases are counted in their order, including one without a design document', async () => {
  const [one, two, bare] = [await freshDb('count'), await freshDb('count'), await freshDb('count')]
  for (const db of [one, two]) await installDocstate(db, {})
  await two.put({ _id: 'o', type: 'order', state: 'paid' })
  const lines: string[] = []
  const { signal } = new AbortController()
  const names = [one.name, two.name, bare.name]
  const counted = await countDatabases(createTestCouch(), names, { note: (line) => lines.push(line), signal })
  expect(counted).toEqual([
    { database: one.name, counts: [] },
    { database: two.name, counts: [count('order', 'paid', 'ready', 1)] },
    { database: bare.name, counts: undefined },
  ])
})
