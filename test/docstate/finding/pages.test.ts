/** Pages of a view with many equal keys, also on a server that does not support `startkey_docid`. */
import { expect, test } from 'vitest'
import { pages, type Place } from '../../../sidecar/docstate/finding/pages.ts'
import { freshDb } from '../../support/couchdb.ts'
import { installDocstate } from '../install.ts'

const ids = (type: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${type}-${String(n).padStart(3, '0')}`)

test('paging returns each row once, from the start and after any row', async () => {
  const db = await freshDb('pages')
  await installDocstate(db, {})
  const [orders, bills] = [ids('order', 90), ids('order-later', 30)]
  const at = '2126-01-01T00:00:00.000Z'
  const waits = { state: 'paid', docstate: { state: 'paid', attempts: 1, retry_at: at } }
  const docs = [...orders, ...bills].map((_id) => ({ _id, type: 'order', ...waits }))
  await db.bulk(docs.map((doc) => JSON.stringify(doc)))
  const later = '2126-01-02T00:00:00.000Z'
  const last = { _id: 'a', type: 'order', state: 'paid', docstate: { ...waits.docstate, retry_at: later } }
  await db.put(last)
  const all = [...orders, ...bills, 'a']
  const range = { startkey: ['order', 'paid', 'retry'], endkey: ['order', 'paid', 'retry', {}] }
  const read = async (size: number, after?: Place) => {
    const found: Place[] = []
    for await (const rows of pages(db, range, undefined, undefined, { size, after })) found.push(...rows)
    return found
  }
  const rows = await read(1000)
  expect(rows.map(({ id }) => id)).toEqual(all)
  for (const size of [7, 50, 120, 121])
    expect(
      (await read(size)).map(({ id }) => id),
      `${size}`,
    ).toEqual(all)
  for (const from of [0, 60, 118, 119, 120]) {
    const rest = await read(20, rows[from])
    expect(
      rest.map(({ id }) => id),
      `${from}`,
    ).toEqual(all.slice(from + 1))
  }
})
