import { describe, expect, it, test } from 'vitest'
import { makeAgain, needs, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import {
  admin,
  basic,
  createUser,
  idsOf,
  openFeed,
  rowsIn,
  start,
  startFollowing,
  type Listed,
} from './db-updates-rig.ts'

const feeds = ['normal', 'longpoll', 'continuous', 'eventsource']
const queries = [
  '',
  ...feeds.map((feed) => `?feed=${feed}`),
  '?limit=x',
  '?feed=bogus',
  '?since=garbage',
  '?heartbeat=0',
]
const REASON = 'You are not a server admin.'

describe('a client without access is refused before any other check', () => {
  it.each(queries)('%s', async (query) => {
    const { get } = await start({ missing: true })
    for (const [headers, status, error, reason] of [
      [{}, 401, 'unauthorized', REASON],
      [{ authorization: basic(uniqueName('unknown'), 'wrong') }, 401, 'unauthorized', 'Name or password is incorrect.'],
    ] as const) {
      for (const method of ['GET', 'POST']) {
        const response = await get(query, headers, method)
        expect([response.status, await response.json()]).toEqual([status, { error, reason }])
        expect(response.headers.get('www-authenticate')).toMatch(/^Basic /)
      }
      expect((await get(query, headers, 'HEAD')).status).toBe(401)
    }
  })

  it.each(['Anna', '1anna', 'anna/orders', 'änna', 'anna@example.com'])(
    'a user named %s is refused, because no account can have this name',
    async (name) => {
      const { get } = await start({ existing: ['updated:orders', `updated:${name}/orders`] })
      const user = await createUser(uniqueName(name))
      for (const query of queries) {
        const response = await get(query, user)
        expect([response.status, await response.json()]).toEqual([403, { error: 'forbidden', reason: REASON }])
      }
    },
  )

  it('a user named _admin without the admin role is refused, because _admin stands for databases without an account', async () => {
    const caller = { name: '_admin', roles: ['admin'] }
    const { get } = await start({ existing: ['updated:orders'], whoIs: () => Promise.resolve(caller) })
    expect((await get()).status).toBe(403)
  })
})

describe('a user', () => {
  const existing = (name: string) => [
    `created:${name}/orders`,
    `updated:${name}/a/b`,
    `deleted:${name}/`,
    `updated:${name}`,
    `updated:${name}x/orders`,
    `updated:x${name}/orders`,
    `updated:acme/${name}/orders`,
    'updated:orders',
    '_design/x',
  ]
  const own = (name: string) => existing(name).slice(0, 3).toSorted()

  it.each(feeds)('sees the databases of the account with the same name: feed=%s', async (feed) => {
    const name = uniqueName('anna$+-()_')
    const user = await createUser(name)
    const { get } = await start({ existing: existing(name) })
    for (const query of ['', '&descending=true']) {
      const rows = rowsIn(await (await get(`?feed=${feed}&timeout=30${query}`, user)).text())
      expect(idsOf(rows)).toEqual(own(name))
      for (const row of rows) expect(Object.keys(row)).toEqual(['db_name', 'type', 'seq'])
    }
  })

  it('waits as on an empty feed while only databases of other accounts have rows', async () => {
    const name = uniqueName('anna')
    const user = await createUser(name)
    const { db, get, url } = await start({ existing: ['updated:orders'] })
    const empty = /^\{"results":\[\n\n\],\n"last_seq":.*\}\n$/
    expect(await (await get('', user)).text()).toMatch(empty)
    expect(await (await get('?feed=longpoll&timeout=30', user)).text()).toMatch(empty)
    const longpoll = await openFeed(`${url}?feed=longpoll`, user)
    const continuous = await openFeed(`${url}?feed=continuous&since=now`, user)
    const theirs = await openFeed(`${url}?feed=continuous&since=now`)
    for (const reader of [longpoll, continuous, theirs]) await eventually(() => expect(reader.text).not.toBe(''))
    await db.report('updated:orders', 'updated:other/orders')
    await eventually(() => expect(theirs.rows()).toHaveLength(2))
    await db.report(`updated:${name}/orders`)
    await eventually(() => expect(longpoll.ended).toBe(true))
    for (const reader of [longpoll, continuous]) {
      await eventually(() => expect(idsOf(reader.rows())).toEqual([`updated:${name}/orders`]))
    }
  })

  it('gets as many rows of the own account as the limit allows, without counting others', async () => {
    const name = uniqueName('anna')
    const user = await createUser(name)
    const others = Array.from({ length: 700 }, (_, i) => `updated:other/${i}`)
    const own = Array.from({ length: 7 }, (_, i) => `updated:${name}/${i}`)
    const { db, get } = await start({ existing: own.slice(0, 3) })
    await db.report(...others, ...own.slice(3))
    const first = (await (await get('?limit=4', user)).json()) as Listed
    expect(first.results).toHaveLength(4)
    const rest = (await (await get(`?limit=4&since=${first.last_seq}`, user)).json()) as Listed
    expect(idsOf([...first.results, ...rest.results])).toEqual(own)
    expect(rowsIn(await (await get('?feed=continuous&limit=7', user)).text())).toHaveLength(7)
    expect(((await (await get('?limit=0', user)).json()) as Listed).results).toEqual([])
  })

  it('gets a last sequence that is after the rows of other accounts', async () => {
    const name = uniqueName('anna')
    const user = await createUser(name)
    const clock = createManualClock()
    const { db, url, feed, get } = await startFollowing({ existing: ['updated:orders'], clock })
    const reader = await openFeed(`${url}?feed=continuous&since=now&timeout=500`, user)
    await eventually(() => expect([reader.text, clock.sleeping]).toEqual(['\n', 1]))
    await db.report('updated:orders')
    await eventually(() => expect(feed.counts().rows).toBe(1))
    await clock.advance(500)
    await eventually(() => expect(reader.ended).toBe(true))
    const [, last] = /"last_seq":"?([^"]*)"?\}/.exec(reader.text)!
    expect(((await (await get(`?since=${last}`)).json()) as Listed).results).toEqual([])
  })
})

test('accepts every client as an admin if CouchDB does so (admin party)', async () => {
  const party = { name: null, roles: ['_admin'] }
  const { get } = await start({ existing: ['updated:orders'], whoIs: () => Promise.resolve(party) })
  expect(rowsIn(await (await get('', {})).text())).toHaveLength(1)
})

describe('the ETag', () => {
  const etagOf = async (get: Awaited<ReturnType<typeof start>>['get'], query: string, headers = admin) =>
    (await get(query, headers)).headers.get('etag')

  it('gives a 304 without a body while the answer is unchanged', async () => {
    const { db, get } = await start({ existing: ['updated:a', 'updated:b'] })
    const etag = (await etagOf(get, '?limit=5'))!
    for (const names of [etag, `"other", ${etag}`, `W/${etag}`]) {
      const response = await get('?limit=5', { ...admin, 'if-none-match': names })
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag])
    }
    expect((await get('?limit=5', { ...admin, 'if-none-match': etag }, 'HEAD')).status).toBe(304)
    expect((await get('?limit=5', { ...admin, 'if-none-match': '"other"' })).status).toBe(200)
    await db.report('updated:a')
    const response = await get('?limit=5', { ...admin, 'if-none-match': etag })
    expect([response.status, rowsIn(await response.text()).length]).toEqual([200, 2])
    expect(response.headers.get('cache-control')).toBe('private, no-cache')
  })

  it('differs for each parameter that changes the answer, and for each user', async () => {
    const [name, other] = [uniqueName('anna'), uniqueName('bob')]
    const { get } = await start({ existing: [`updated:${name}/a`, `updated:${other}/a`, 'updated:c'] })
    const seq = ((await (await get('?limit=1')).json()) as Listed).last_seq
    const queries = ['', '?limit=1', '?limit=2', `?since=${seq}`, '?since=now', '?descending=true', '?limit=0']
    const clients = [admin, await createUser(name), await createUser(other)]
    const all = []
    for (const client of clients) for (const query of queries) all.push(await etagOf(get, query, client))
    expect(new Set(all).size).toBe(queries.length * clients.length)
    expect(await etagOf(get, '?limit=2')).toBe(all[2])
  })

  it('is absent on every feed except a normal one', async () => {
    const { get } = await start({ existing: ['updated:a'] })
    for (const feed of feeds.slice(1)) expect(await etagOf(get, `?feed=${feed}&timeout=10`)).toBeNull()
  })

  it('differs after the database is created again', async () => {
    needs('database identity')
    const { db, get } = await start({ existing: ['updated:a'] })
    const etag = await etagOf(get, '')
    await makeAgain(db)
    await eventually(() => db.report('updated:a'))
    expect(await etagOf(get, '')).not.toBe(etag)
  })
})
