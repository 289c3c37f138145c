/** The requests of devices that pass the real proxies of examples/reverse-proxy/. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createCouch, type Couch } from '../../sidecar/couch/client.ts'
import { seqText } from '../../sidecar/couch/documents.ts'
import { createUser, setSecurity } from '../ddocs/users.ts'
import { createPouch } from '../inbox/pouch.ts'
import { couchUrl, deleteDb, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type FaultyProxy } from '../support/faulty-proxy.ts'
import { basic, createServerAdmin, loginStatus } from '../support/server-admin.ts'
import { ask, startReverseProxy, type Kind, type ReverseProxy } from './reverse-proxy.ts'

const DB = `channel-${randomBytes(16).toString('hex')}`
const { username, password } = new URL(couchUrl())
const authorization = basic(decodeURIComponent(username), decodeURIComponent(password))

/** Each request would succeed for an admin at CouchDB itself, or be read as another path. */
const REFUSED: readonly (readonly [method: string, path: string])[] = [
  ...['/', '/_all_dbs', '/_session', '/_utils/', '/_up', '/_node/_local/_config', '/_users/_all_docs', '/other'].map(
    (path) => ['GET', path] as const,
  ),
  ...['/_replicate', '/_session', '/_dbs_info', '/_replicator', `/${DB}`].map((path) => ['POST', path] as const),
  ...['_security', '_design/x', '_design/x/_view/y', '_design_docs', '_local_docs', '_shards', '_revs_limit'].map(
    (path) => ['GET', `/${DB}/${path}`] as const,
  ),
  ...['_find', '_index', '_explain', '_purge', '_compact', '_view_cleanup', '_changes', '_missing_revs'].map(
    (path) => ['POST', `/${DB}/${path}`] as const,
  ),
  ...['', '/', '/_security', '/_design/x', '/doc', '/doc/file'].map((path) => ['PUT', `/${DB}${path}`] as const),
  ...['', '/doc', '/_local/x', '/doc/file'].map((path) => ['DELETE', `/${DB}${path}`] as const),
  ['GET', '//_all_dbs'],
  ['GET', '/%5Fall_dbs'],
  ['GET', `/${DB}/../_all_dbs`],
  ['GET', `/${DB}/doc/../../_all_dbs`],
  ['GET', `/${DB}/_changes/../../_all_dbs`],
  ['GET', `/${DB}/%2e%2e/_all_dbs`],
  ['GET', `/${DB}%2f..%2f_all_dbs`],
  ['GET', `/${DB}/%5Fsecurity`],
  ['GET', `/${DB}/%5fdesign/x`],
  ['GET', `/${DB}/./_security`],
  ['GET', `/${DB}//_security`],
  ['GET', `/x/../${DB}/_security`],
  ['POST', `/${DB}/_bulk_docs/../_find`],
  ['POST', `/${DB}/_bulk_docs/../../_replicate`],
]

let admin: Couch
beforeAll(async () => {
  admin = createCouch({ url: couchUrl() })
  await admin.db(DB).create()
})
afterAll(async () => {
  await admin.close()
  await deleteDb(DB)
})

describe.each<Kind>(['nginx', 'Caddy'])('%s', (kind) => {
  let upstream: FaultyProxy
  let proxy: ReverseProxy

  beforeEach(async () => {
    needs('node endpoints')
    upstream = await startFaultyProxy()
    proxy = await startReverseProxy(kind, { couch: upstream.url, sidecar: upstream.url })
    onTestFinished(() => proxy.end())
  })
  const of = (path: string) => upstream.requests.filter((seen) => seen.path === path)

  it('blocks every path that devices do not need, also for an admin and in any spelling', async () => {
    for (const [method, path] of REFUSED) {
      const { status } = await ask(proxy.couch, path, { method, headers: { authorization }, body: '{}' })
      expect.soft({ method, path, status }).toEqual({ method, path, status: expect.toBeOneOf([400, 403]) as number })
    }
    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([])
  })

  it('lets a device replicate both ways, with attachments, and wait for changes', async () => {
    const device = await createUser()
    await setSecurity(admin, DB, { names: [device.name], roles: [] })
    const file = { 'a b.txt': { content_type: 'text/plain', data: btoa('attached') } }
    await admin.db(DB).put({ _id: `there/${kind}`, _attachments: file })
    const url = `${proxy.couch.replace('//', `//${device.name}:${device.password}@`)}/${DB}`
    const phone = createPouch() as ReturnType<typeof createPouch> & {
      get(id: string, options: object): Promise<{ _attachments: Record<string, { data: string }> }>
      replicate: { from(url: string, options?: object): ReturnType<ReturnType<typeof createPouch>['replicate']['to']> }
    }
    await phone.put({ _id: `here ü/${kind}`, _attachments: file })
    expect(await phone.replicate.to(url)).toMatchObject({ ok: true, docs_written: 1 })
    expect(await admin.db(DB).find(`here ü/${kind}`)).toMatchObject({ _attachments: { 'a b.txt': {} } })
    await phone.replicate.from(url)
    const got = await phone.get(`there/${kind}`, { attachments: true })
    expect(atob(got._attachments['a b.txt']!.data)).toBe('attached')
    const { last_seq } = await admin.db(DB).changesPage({ since: 'now' })
    const path = `/${DB}/_changes?feed=longpoll&since=${seqText(last_seq)}`
    let answer: string | undefined
    const headers = { authorization: basic(device.name, device.password) }
    void ask(proxy.couch, path, { headers }).then(({ text }) => (answer = text))
    let written = 0
    await eventually(async () => {
      await admin.db(DB).put({ _id: `news/${kind}/${written++}` }) // CouchDB may miss one change while a feed starts
      expect(answer).toContain(`news/${kind}`)
    })
    const doc = await ask(proxy.couch, `/${DB}/${encodeURIComponent(`there/${kind}`)}`, { headers: { authorization } })
    expect(doc.status).toBe(200)
  })

  it('passes only feeds that end by themselves, also where the client requests others', async () => {
    const path = `/${DB}/_changes`
    await admin.db(DB).put({ _id: `something/${kind}` }) // to receive changes at once
    const feeds = [
      ['', { feed: 'normal' }],
      ['?feed=continuous&heartbeat=1000&since=now&limit=3', { feed: 'normal', since: 'now', limit: '3' }],
      ['?feed=eventsource&style=all_docs', { feed: 'normal', style: 'all_docs' }],
      ['?feed=normal&fe%65d=continuous&f%65ed=live', { feed: 'normal' }],
      ['?since=0&filter=_view&view=x/y&include_docs=true', { feed: 'normal', since: '0' }],
      ['?feed=longpoll&heartbeat=1000&timeout=9999999&h%65artbeat=1000', { feed: 'longpoll', timeout: '25000' }],
    ] as const
    for (const [query, expected] of feeds) {
      expect((await ask(proxy.couch, path + query, { headers: { authorization } })).status).toBe(200)
      const sent = of(path).at(-1)!.query
      expect(Object.fromEntries(sent)).toMatchObject(expected)
      const names = [...sent.keys()]
      expect(new Set(names).size).toBe(names.length)
      for (const name of names) expect(name).toBeOneOf(['feed', 'timeout', 'since', 'limit', 'style'])
    }
    const endless = ';feed=continuous;heartbeat=1000' // CouchDB reads these as parameters
    for (const query of ['?since=0', '?limit=1', '?style=main_only', '?feed=normal']) {
      expect((await ask(proxy.couch, path + query + endless, { headers: { authorization } })).status).toBeOneOf([
        200, 400, 500,
      ])
    }
    for (const query of ['?since=0%26feed%3Dcontinuous', '?limit=1%26heartbeat=1000']) {
      await ask(proxy.couch, path + query, { headers: { authorization } })
      expect([...of(path).at(-1)!.query.keys()]).not.toContain('heartbeat')
      expect(of(path).at(-1)!.query.getAll('feed')).toEqual(['normal'])
    }
  })

  it('passes the client address to CouchDB, and no forwarding header of the client', async () => {
    const own = await createServerAdmin()
    const forged = {
      'x-forwarded-for': '203.0.113.7, 127.0.0.1',
      'x-auth-couchdb-username': 'admin',
      'x-auth-couchdb-roles': '_admin',
      'x-auth-couchdb-token': 'x',
    }
    const headers = { ...forged, authorization: own.authorization }
    expect((await ask(proxy.couch, `/${DB}`, { headers })).status).toBe(200)
    const seen = of(`/${DB}`).at(-1)!.headers
    expect(seen['x-forwarded-for']).toBe('127.0.0.1')
    for (const name of Object.keys(forged).slice(1)) expect(seen[name] ?? '').toBe('')
    expect(await loginStatus(own.authorization)).toBe(200)
  })

  it('serves the inbox and the confirm page of the sidecar, and no operator path', async () => {
    for (const path of ['/_up', '/inbox', '/inbox/x', '/confirm/a/b']) {
      await ask(proxy.sidecar, path)
      expect(of(path)).toHaveLength(1)
      expect(of(path)[0]!.headers['x-forwarded-for']).toBe('127.0.0.1')
    }
    const before = upstream.requests.length
    const paths = ['/', '/metrics', '/_db_updates', '/_events/mail:sent', '/_workers', '/_indexes', '/_mail']
    for (const path of [...paths, '//metrics', '/inbox/../metrics', '/inbox/%2e%2e/metrics', '/confirm/..%2fmetrics']) {
      const { status } = await ask(proxy.sidecar, path, { headers: { authorization } })
      expect.soft({ path, status }).toEqual({ path, status: expect.toBeOneOf([400, 403]) as number })
    }
    expect(upstream.requests.slice(before).map(({ path }) => path)).toEqual([])
  })
})
