import { Hono } from 'hono'
import { pino } from 'pino'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { adminOnly, type AdminOnlyOptions } from '../../sidecar/http/authenticate.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { serveApp } from './serve-app.ts'
import { createTestCouch, couchUrl, uniqueName } from '../support/couchdb.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createTestAuthenticate } from './test-authenticate.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

const clock = createManualClock()
let requests: number

function createApp(url = couchUrl(), options: Partial<AdminOnlyOptions> = {}) {
  requests = 0
  const authenticate = createTestAuthenticate({ url, clock, onRequest: () => void requests++ })
  const route = new Hono()
  route.get('/secret', adminOnly({ authenticate, ...options }), (c) => c.text('for admins'))
  return createHttp({ routes: [route], log: pino({ level: 'silent' }) })
}

async function createUser(roles = ['editor']): Promise<{ name: string; password: string }> {
  const couch = createTestCouch()
  const users = couch.db('_users')
  await users.create()
  const name = uniqueName('user')
  const _id = `org.couchdb.user:${name}`
  const rev = await users.put({ _id, name, password: 'pw', type: 'user', roles })
  onTestFinished(() => users.remove(_id, rev))
  return { name, password: 'pw' }
}

describe('an admin-only route', () => {
  const { username, password } = new URL(couchUrl())
  const admin = { authorization: basic(decodeURIComponent(username), decodeURIComponent(password)) }
  let app: Hono
  beforeEach(() => void (app = createApp()))

  it('accepts an admin with name and password', async () => {
    const response = await app.request('/secret', { headers: admin })
    expect([response.status, await response.text()]).toEqual([200, 'for admins'])
  })

  it('accepts an admin with a session cookie', async () => {
    const { origin } = new URL(couchUrl())
    const login = await fetch(`${origin}/_session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: decodeURIComponent(username), password: decodeURIComponent(password) }),
    })
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect((await app.request('/secret', { headers: { cookie } })).status).toBe(200)
    expect((await app.request('/secret', { headers: { cookie: 'AuthSession=forged' } })).status).toBeOneOf([400, 401])
  })

  it('refuses a request without credentials, and prompts for them', async () => {
    const response = await app.request('/secret')
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic /)
    expect(await response.json()).toEqual({ error: 'unauthorized', reason: 'You are not a server admin.' })
  })

  it('refuses a wrong password', async () => {
    const response = await app.request('/secret', { headers: { authorization: basic(uniqueName('unknown'), 'wrong') } })
    expect(response.status).toBe(401)
    expect(await response.json()).toEqual({ error: 'unauthorized', reason: 'Name or password is incorrect.' })
  })

  it('refuses a user who is not an admin', async () => {
    const { name, password } = await createUser()
    const response = await app.request('/secret', { headers: { authorization: basic(name, password) } })
    expect(response.status).toBe(403)
    expect(await response.json()).toEqual({ error: 'forbidden', reason: 'You are not a server admin.' })
  })

  it('accepts users with one of its roles, and refuses others with its own reason', async () => {
    const allowed = createApp(couchUrl(), { roles: ['_admin', 'auditor'], reason: 'You are no auditor.' })
    for (const [roles, status] of [
      [['editor', 'auditor'], 200],
      [['editor'], 403],
    ] as const) {
      const { name, password } = await createUser([...roles])
      const response = await allowed.request('/secret', { headers: { authorization: basic(name, password) } })
      expect(response.status).toBe(status)
      if (status === 403) expect(await response.json()).toEqual({ error: 'forbidden', reason: 'You are no auditor.' })
    }
    expect((await allowed.request('/secret', { headers: admin })).status).toBe(200)
    expect(await (await allowed.request('/secret')).json()).toMatchObject({ reason: 'You are no auditor.' })
  })

  it.each(['Basic', 'Basic ===', 'Bearer x.y.z', 'nonsense', 'Basic \u00ff'])(
    'refuses malformed credentials: %s',
    async (authorization) => {
      expect((await app.request('/secret', { headers: { authorization } })).status).toBeOneOf([400, 401])
    },
  )

  it('checks the credentials of each client with CouchDB at most once in five seconds', async () => {
    await app.request('/secret', { headers: admin })
    await app.request('/secret', { headers: admin })
    expect(requests).toBe(1)
    expect((await app.request('/secret')).status).toBe(401)
    expect(requests).toBe(2)
    await clock.advance(5_000)
    await app.request('/secret', { headers: admin })
    expect(requests).toBe(3)
  })

  it('checks the credentials of hundreds of concurrent requests with one request to CouchDB', async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, async () => app.request('/secret', { headers: admin })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(requests).toBe(1)
  })

  it('accepts waiting requests after the first one was aborted', async () => {
    const leaving = new AbortController()
    const first = app.request('/secret', { headers: admin, signal: leaving.signal })
    const second = app.request('/secret', { headers: admin })
    leaving.abort()
    expect([(await second).status, requests]).toEqual([200, 1])
    await first
  })

  it('refuses requests while CouchDB is unreachable, and does not cache the refusal', async () => {
    const away = createApp('http://127.0.0.1:1')
    const response = await away.request('/secret', { headers: admin })
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ error: 'service_unavailable' })
    await away.request('/secret', { headers: admin })
    expect(requests).toBe(2)
  })

  it('refuses requests if the server is not a CouchDB', async () => {
    const other = new Hono().get('/_session', (c) => c.json({ ok: true, roles: ['_admin'] }))
    const listening = await serveApp(other)
    expect((await createApp(listening.url).request('/secret', { headers: admin })).status).toBe(503)
  })
})
