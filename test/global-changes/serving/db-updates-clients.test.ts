import { execFile } from 'node:child_process'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import nano from 'nano'
import { expect, onTestFinished, test } from 'vitest'
import { welcome } from '../../../sidecar/http/up.ts'
import { couchUrl } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { skipFor } from '../../support/features.ts'
import { idsOf, openFeed, rowsIn, start, startFollowing, type Listed } from './db-updates-rig.ts'

const { username, password } = new URL(couchUrl())

/** The address of the sidecar with the admin’s name and password, as clients of CouchDB take it. */
const withAdmin = (url: string) => url.replace('//', `//${username}:${password}@`).replace('/_db_updates', '')

test('nano reads _db_updates of the sidecar in the same way as that of CouchDB', async () => {
  const { db, url } = await start({ existing: ['created:acme/orders', 'updated:acme/orders'] })
  const server = nano(withAdmin(url))
  const all = (await server.updates()) as unknown as Listed
  expect(idsOf(all.results)).toEqual(['created:acme/orders', 'updated:acme/orders'])
  const query = { feed: 'longpoll', since: all.last_seq, heartbeat: 20, limit: 1 }
  const waiting = server.request({ db: '_db_updates', qs: query }) as Promise<Listed>
  await db.report('deleted:acme/orders')
  expect(idsOf((await waiting).results)).toEqual(['deleted:acme/orders'])
  await expect(server.request({ db: '_db_updates', qs: { limit: 'x' } })).rejects.toMatchObject({
    statusCode: 400,
    error: 'bad_request',
    reason: 'invalid_integer',
  })
})

test('curl prints rows as they arrive', async () => {
  const run = promisify(execFile)
  const hasCurl = await run('curl', ['--version']).then(Boolean, () => false)
  if (!hasCurl) skipFor('curl is not installed on this machine')
  const { db, url, feed } = await start({ existing: ['updated:old'] })
  const args = ['-sSN', '-u', decodeURIComponent(`${username}:${password}`)]
  const showing = run('curl', [...args, `${url}?feed=continuous&since=now&limit=2&heartbeat=50`])
  await eventually(() => expect(feed.counts().pages).toBeGreaterThan(0))
  await db.report('updated:a')
  await db.report('updated:b')
  const { stdout } = await showing
  expect(idsOf(rowsIn(stdout))).toEqual(['updated:a', 'updated:b'])
  expect(stdout).toMatch(/^\n+\{.*\}\n\n*\{.*\}\n\{"last_seq":.*\}\n$/)
  const { stdout: head } = await run('curl', [...args, '-I', url])
  expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/)
})

/**
 * The behaviour of cloudant-follow 0.18.2 with `_db_updates` (its lib/feed.js and lib/stream.js). It is not installed
 * here, because its dependency `request` is unmaintained. It first requests the server’s name. An answer of an endless
 * feed is lines, each empty or starting with a brace. An answer of a longpoll starts with exactly `{"results":[`. After
 * a line with `last_seq` and after the end, it continues from that sequence. Silence for 1.25 heartbeats counts as a
 * timeout here, and it continues as well.
 */
async function followAsCloudantDoes(server: string, feed: 'continuous' | 'longpoll', heartbeat: number) {
  const { couchdb } = (await (await fetch(`${server}/`)).json()) as { couchdb?: string }
  if (!couchdb) throw new Error('Bad server response')
  const found: string[] = []
  let since = '0'
  let timeouts = 0
  let isOver = false
  const query = () => `${server}/_db_updates?feed=${feed}&heartbeat=${heartbeat}&since=${since}&limit=100`
  const take = (row: { db_name: string; type: string; seq: string }) => {
    found.push(`${row.type}:${row.db_name}`)
    since = String(row.seq)
  }
  const ask = async () => {
    const reader = await openFeed(query())
    if (reader.response.status !== 200) throw new Error('Bad changes response')
    let done = 0
    for (let length = -1; !reader.ended && !isOver;) {
      await sleep(heartbeat * 1.25)
      for (let turn = 0; turn < 3; turn++) await setImmediate() // rows that arrived while this process was busy count
      if (length === reader.text.length) timeouts += 1
      length = reader.text.length
      if (feed === 'longpoll') continue
      const lines = reader.text.split('\n').slice(0, -1)
      for (const line of lines.slice(done)) {
        if (line === '') continue
        if (!line.startsWith('{')) throw new Error(`Non-object JSON data: ${line}`)
        const row = JSON.parse(line) as { last_seq?: string } & Parameters<typeof take>[0]
        if (row.last_seq !== undefined) since = String(row.last_seq)
        else take(row)
      }
      done = lines.length
    }
    if (feed === 'continuous' || isOver) return
    if (!reader.text.startsWith('{"results":[')) throw new Error('Prefix not expected')
    for (const row of (JSON.parse(reader.text) as Listed).results) take(row)
  }
  const failed: unknown[] = []
  void (async () => {
    while (!isOver) await ask()
  })().catch((thrown: unknown) => failed.push(thrown))
  onTestFinished(() => void (isOver = true))
  return { found, failed, timeouts: () => timeouts }
}

test.each(['continuous', 'longpoll'] as const)('cloudant-follow follows _db_updates: %s', async (feed) => {
  const existing = ['created:a', 'updated:a', 'deleted:a', 'created:b']
  const { db, url, feed: updates, stop } = await startFollowing({ existing: existing.slice(0, 1), routes: [welcome()] })
  const follower = await followAsCloudantDoes(url.replace('/_db_updates', ''), feed, 400)
  for (const [i, id] of existing.entries()) {
    if (i > 0) await db.report(id)
    await eventually(() => expect(follower.found).toContain(id))
    // The next row waits for the client: a row in a page may come twice (docs/designs/global-changes.md).
    await eventually(() => expect(updates.counts().pages).toBe(feed === 'longpoll' ? i + 2 : 1))
  }
  expect([follower.found, follower.failed, follower.timeouts()]).toEqual([existing, [], 0])
  await stop()
})
