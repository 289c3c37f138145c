import { describe, expect, it } from 'vitest'
import { needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { sample } from '../../support/thorough.ts'
import { updatesOf } from '../reading/event-database.ts'
import { admin, idsOf, rowsIn, start, type Row } from './db-updates-rig.ts'

const feeds = ['normal', 'longpoll', 'continuous', 'eventsource'] as const
type Feed = (typeof feeds)[number]

const events = ['created:acme/orders', 'updated:acme/orders', 'deleted:users']

/** The rows of an answer, whose text must equal CouchDB's to the byte. */
function rowsOf(feed: Feed, text: string): Row[] {
  const rows = rowsIn(text)
  const json = rows.map(({ db_name, type, seq, account }) => JSON.stringify({ db_name, type, seq, account }))
  const last = /"last_seq":(.*)\}\n$/.exec(text)?.[1]
  const waited = rows.length === 0 && !text.startsWith('{')
  const texts: Record<Feed, string> = {
    normal: `{"results":[\n${json.join(',\r\n')}\n],\n"last_seq":${last}}\n`,
    longpoll: `{"results":[\n${json.join(',\r\n')}\n],\n"last_seq":${last}}\n`,
    continuous: `${waited ? '\n' : ''}${json.map((row) => `${row}\n`).join('')}{"last_seq":${last}}\n`,
    eventsource: rows.map(({ seq }, i) => `data: ${json[i]!}\nid: ${JSON.stringify(seq)}\n\n`).join(''),
  }
  expect(text.replace(/^id: .*\n\n$/, ''), 'as CouchDB writes it').toBe(texts[feed])
  return rows
}

const lastSeq = (text: string) => String(JSON.parse(/"last_seq":(.*)\}\n$/.exec(text)![1]!))

describe.each(sample(feeds, 3))('feed=%s', (feed) => {
  /** Endless feeds end after a short idle time. */
  const queryOf = (query = '') => `?feed=${feed}&timeout=30${query && `&${query}`}`

  it('returns the existing rows and then the last sequence', async () => {
    const { get } = await start({ existing: events })
    const response = await get(queryOf())
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(feed === 'eventsource' ? 'text/event-stream' : 'application/json')
    const text = await response.text()
    expect(idsOf(rowsOf(feed, text))).toEqual(events.toSorted())
    expect(
      rowsIn(text)
        .map(({ account }) => account)
        .sort(),
    ).toEqual(['_admin', 'acme', 'acme'])
    if (feed !== 'eventsource') {
      const after = await get(`?since=${lastSeq(text)}`)
      expect(rowsOf('normal', await after.text())).toEqual([])
    }
  })

  it('returns no row of an empty database and no row since now', async () => {
    expect(rowsOf(feed, await (await (await start()).get(queryOf())).text())).toEqual([])
    const { get } = await start({ existing: events })
    expect(rowsOf(feed, await (await get(queryOf('since=now'))).text())).toEqual([])
  })

  it('omits documents that are no database events', async () => {
    const { db, get } = await start()
    await db.report(...events, 'renamed:orders', 'note', '_design/x', 'updated:', 'updated:gone')
    await db.remove('updated:gone', (await db.get('updated:gone'))._rev)
    expect(idsOf(rowsOf(feed, await (await get(queryOf())).text()))).toEqual(events.toSorted())
  })

  it('returns a row for a database of any name', async () => {
    const { db, get } = await start()
    const names = ['a:b', 'a/b/c', '_users', 'a$+-()_', 'Ünïcødé "🐘"\u2028']
    await db.report(...names.map((name) => `updated:${name}`))
    const rows = rowsOf(feed, await (await get(queryOf())).text())
    expect(rows.map(({ db_name }) => db_name).sort()).toEqual(names.toSorted())
  })

  it('returns at most limit rows and the sequence after them', async () => {
    const { db, get } = await start()
    await db.report('note', 'another', ...updatesOf(5))
    const seen: string[] = []
    for (let since = '0', round = 0; round < 3; round++) {
      const text = await (await get(`${queryOf()}&limit=2&since=${since}`)).text()
      const rows = rowsOf(feed, text)
      seen.push(...idsOf(rows))
      since = feed === 'eventsource' ? String(rows.at(-1)!.seq) : lastSeq(text)
    }
    expect(seen.sort()).toEqual(updatesOf(5))
  })

  it('returns no row for limit=0 and keeps its sequence', async () => {
    const { get } = await start({ existing: updatesOf(5) })
    const text = await (await get(`?feed=${feed}&limit=0`)).text()
    expect(rowsOf(feed, text)).toEqual([])
    if (feed === 'eventsource') return
    expect(rowsOf('normal', await (await get(`?since=${lastSeq(text)}`)).text())).toHaveLength(5)
    const now = await (await get(`?feed=${feed}&limit=0&since=now`)).text()
    expect(rowsOf('normal', await (await get(`?since=${lastSeq(now)}`)).text())).toEqual([])
  })

  it('returns rows from last to first when descending, from any sequence, and ends', async () => {
    const { db, get } = await start()
    for (const id of updatesOf(6)) await db.report(id)
    const all = rowsOf(feed, await (await get(`?feed=${feed}&descending=true&since=now`)).text())
    expect(idsOf(all)).toEqual(updatesOf(6))
    const two = rowsOf(feed, await (await get(`?feed=${feed}&descending=true&limit=2`)).text())
    expect(two).toHaveLength(2)
    const first = rowsOf(feed, await (await get(`?feed=${feed}&descending=other&limit=1&timeout=30`)).text())
    expect(idsOf(first)).not.toEqual(['updated:db5'])
    expect(rowsOf(feed, await (await get(`?feed=${feed}&descending=true&limit=0`)).text())).toEqual([])
  })

  it('returns more rows than one page', async () => {
    const { get } = await start({ existing: updatesOf(1234) })
    for (const query of ['', 'descending=true', 'limit=1100', 'descending=true&limit=1100']) {
      const rows = rowsOf(feed, await (await get(queryOf(query))).text())
      expect(new Set(idsOf(rows)).size).toBe(query.includes('limit') ? 1100 : 1234)
    }
  })

  it.each([
    ['limit=x', 'invalid_integer'],
    ['limit=-1', 'invalid_integer'],
    ['limit=', 'invalid_integer'],
    ['limit=1.5', 'invalid_integer'],
    ['limit=true', 'invalid_integer'],
    ['timeout=abc', 'invalid_integer'],
    ['timeout=-1', 'invalid_integer'],
    ['heartbeat=abc', 'invalid_integer'],
    ['heartbeat=-5', 'invalid_integer'],
    ['heartbeat=0', 'The heartbeat value should be a positive integer (in milliseconds).'],
  ])('refuses %s', async (query, reason) => {
    const { get } = await start()
    const response = await get(`?feed=${feed}&${query}`)
    expect([response.status, await response.json()]).toEqual([400, { error: 'bad_request', reason }])
  })

  it.each(['garbage', '', '9999', '4-g1AAAA', '"'])('refuses since=%s', async (since) => {
    needs('feed parameters')
    const { get } = await start()
    const response = await get(`?feed=${feed}&since=${encodeURIComponent(since)}`)
    const reason = "Malformed sequence supplied in 'since' parameter."
    expect([response.status, await response.json()]).toEqual([400, { error: 'bad_request', reason }])
  })

  it('reads parameters as CouchDB does: signed numbers, a quoted sequence, and unknown parameters', async () => {
    const { get } = await start({ existing: updatesOf(3) })
    const place = lastSeq(await (await get('?limit=2')).text())
    const query = `&limit=%2B2&heartbeat=false&filter=_view&since=${encodeURIComponent(`"${place}"`)}`
    expect(rowsOf(feed, await (await get(queryOf(query))).text())).toHaveLength(1)
    expect(rowsOf(feed, await (await get(`${queryOf()}&since=now&last-event-id=${place}`)).text())).toHaveLength(1)
    expect(rowsOf(feed, await (await get(`${queryOf()}&last-event-id=${place}&since=now`)).text())).toHaveLength(0)
  })

  it('reports a missing database', async () => {
    const { get } = await start({ missing: true })
    for (const query of ['', '&since=now', '&limit=0', '&descending=true', '&heartbeat=1000']) {
      const response = await get(`?feed=${feed}${query}`)
      const said = { error: 'not_found', reason: 'Database does not exist.' }
      expect([response.status, await response.json()]).toEqual([404, said])
    }
    expect((await get(`?feed=${feed}`, admin, 'HEAD')).status).toBe(404)
  })

  it('answers HEAD at once without a body', async () => {
    const { feed: updates, get } = await start({ existing: events })
    const response = await get(`?feed=${feed}&since=now&heartbeat=1000`, admin, 'HEAD')
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(response.headers.has('etag')).toBe(feed === 'normal')
    await eventually(() => expect(updates.counts().readers).toBe(0))
  })
})

it.each(['bogus', '', 'live', 'NORMAL'])('refuses feed=%s', async (feed) => {
  const { get } = await start({ missing: true }) // the missing database comes after this check
  const response = await get(`?feed=${feed}&since=garbage`)
  const reason = 'Supported `feed` types: normal, continuous, longpoll, eventsource'
  expect([response.status, await response.json()]).toEqual([400, { error: 'bad_request', reason }])
})

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('rejects the method %s', async (method) => {
  const { get } = await start()
  const response = await get('', admin, method)
  const said = { error: 'method_not_allowed', reason: 'Only GET allowed' }
  expect([response.status, await response.json(), response.headers.get('allow')]).toEqual([405, said, 'GET'])
})

it('prefers the Last-Event-ID header of an event source to the sequence in the query', async () => {
  const { get } = await start({ existing: updatesOf(3) })
  const place = lastSeq(await (await get('?limit=2')).text())
  for (const id of [place, `"${place}"`]) {
    const headers = { ...admin, 'Last-Event-ID': id }
    const rows = async (query: string) => rowsIn(await (await get(`?timeout=30&since=now&${query}`, headers)).text())
    expect(await rows('feed=eventsource')).toHaveLength(1)
    for (const feed of ['normal', 'longpoll', 'continuous']) expect(await rows(`feed=${feed}`)).toEqual([])
  }
})
