import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { Histogram } from '../../sidecar/core/histogram.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { adminOnly } from '../../sidecar/http/authenticate.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { indexesRoute } from '../../sidecar/indexes/indexes-feature.ts'
import { Entry } from '../../sidecar/indexes/entry.ts'
import { rowOf } from '../../sidecar/indexes/rows.ts'
import { noIndexes } from '../metrics/sources.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'
import { createTestAuthenticate } from '../http/test-authenticate.ts'

const entryOf = (database: string, behindSince: number) =>
  new Entry({ database, ddoc: '_design/sales', kind: 'view', name: 'by_total', rev: '1-a' }, behindSince)

function start() {
  const fresh = entryOf('fresh', 0)
  fresh.confirm(Date.now(), undefined)
  const failing = entryOf('userdb-1', Date.now() - 1000)
  failing.begin(5, 0, undefined)
  failing.fail({ code: 'server', reason: 'OS process timed out.', at: Date.now(), count: 1 }, 0, 5000)
  const entries = [fresh, entryOf('userdb-2', Date.now() - 60_000), failing]
  const theirs = rowOf(entryOf('theirs', Date.now() - 90_000), Date.now())
  const route = indexesRoute({
    ...{ adminOnly: adminOnly({ authenticate: createTestAuthenticate() }), worker: 'one', clock: systemClock },
    indexes: { entries: () => entries, counts: () => ({ ...noIndexes, lags: new Histogram(), serversKen: 'on' }) },
    notes: () => Promise.resolve([{ worker: 'two', at: '2026-11-22T05:20:11.004Z', indexes: 40, behind: [theirs] }]),
  })
  return createHttp({ routes: [route], log: pino({ level: 'silent' }) })
}

const { username, password } = new URL(couchUrl())
const basic = (user: string, word: string) => `Basic ${Buffer.from(`${user}:${word}`).toString('base64')}`
const admin = { authorization: basic(username, password) }

test('an admin sees the lag of each index, failed ones first, and the notes of other workers', async () => {
  const response = await start().request('/_indexes', { headers: admin })
  const answer = (await response.json()) as { rows: { db_name: string; worker: string }[] }
  expect(answer).toMatchObject({ worker: 'one', ken: 'on', paused: null, indexes: 3 })
  expect(answer).toMatchObject({ others: [{ worker: 'two', indexes: 40, behind: 1 }] })
  expect(answer.rows.map(({ db_name, worker }) => `${db_name} ${worker}`)).toEqual([
    'userdb-1 one',
    'theirs two',
    'userdb-2 one',
    'fresh one',
  ])
  expect(answer.rows[0]).toMatchObject({ error: { reason: 'OS process timed out.' }, building: false })
})

test.each([
  ['fresh', ['fresh']],
  ['userdb-*', ['userdb-1', 'userdb-2']],
  ['nothing', []],
])('the route filters by ?database=%s', async (database, expected) => {
  const response = await start().request(`/_indexes?database=${database}`, { headers: admin })
  const { rows } = (await response.json()) as { rows: { db_name: string }[] }
  expect(rows.map(({ db_name }) => db_name)).toEqual(expected)
})

test('other users see no index, and the route accepts no write', async () => {
  const app = start()
  expect((await app.request('/_indexes')).status).toBe(401)
  const users = createTestCouch().db('_users')
  await users.create()
  const name = uniqueName('user')
  const _id = `org.couchdb.user:${name}`
  const rev = await users.put({ _id, name, password: 'pw', type: 'user', roles: [] })
  onTestFinished(() => users.remove(_id, rev))
  const response = await app.request('/_indexes', { headers: { authorization: basic(name, 'pw') } })
  expect(response.status).toBe(403)
  expect((await app.request('/_indexes', { method: 'POST', headers: admin })).status).toBe(405)
})
