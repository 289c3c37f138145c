import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createHttp } from '../../sidecar/http/app.ts'
import { metricsRoute, type Format } from '../../sidecar/metrics/metrics-route.ts'
import { parseExposition } from './parse-exposition.ts'
import { metricsFrom, sourcesOf } from './sources.ts'
import { couchUrl, createTestCouch, needs, uniqueName } from '../support/couchdb.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createTestAuthenticate } from '../http/test-authenticate.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const { username, password } = new URL(couchUrl())
const admin = { authorization: basic(decodeURIComponent(username), decodeURIComponent(password)) }

function createApp() {
  let reads = 0
  const metrics = metricsFrom(sourcesOf()).map((group) => ({ ...group, read: () => ((reads += 1), group.read()) }))
  const route = metricsRoute({ authenticate: createTestAuthenticate({ clock: createManualClock() }), metrics })
  return { app: createHttp({ routes: [route], log: pino({ level: 'silent' }) }), reads: () => reads }
}

async function userWith(...roles: string[]) {
  const users = createTestCouch().db('_users')
  await users.create()
  const name = uniqueName('user')
  const _id = `org.couchdb.user:${name}`
  const rev = await users.put({ _id, name, password: 'pw', type: 'user', roles })
  onTestFinished(() => users.remove(_id, rev))
  return { authorization: basic(name, 'pw') }
}

test('an admin gets the metrics', async () => {
  const response = await createApp().app.request('/metrics', { headers: admin })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(parseExposition(await response.text(), 'prometheus')).toHaveProperty('size')
})

test('a user with the CouchDB role _metrics gets the metrics, too', async () => {
  needs('metrics role')
  const { app } = createApp()
  expect((await app.request('/metrics', { headers: await userWith('editor', '_metrics') })).status).toBe(200)
})

test('other users get the refusal of CouchDB, and no metric is collected for them', async () => {
  const { app, reads } = createApp()
  const reason = 'You are not a server admin or read-only metrics user'
  const anonymous = await app.request('/metrics')
  expect([anonymous.status, anonymous.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="couchdb-sidecar"'])
  expect(await anonymous.json()).toEqual({ error: 'unauthorized', reason })
  const user = await app.request('/metrics', { headers: await userWith('editor', 'metrics') })
  expect([user.status, await user.json()]).toEqual([403, { error: 'forbidden', reason }])
  const wrong = await app.request('/metrics', { headers: { authorization: basic(uniqueName('unknown'), 'wrong') } })
  expect(wrong.status).toBe(401)
  expect(reads()).toBe(0)
})

test('HEAD gives the headers without the metrics, and only GET and HEAD are allowed', async () => {
  const { app } = createApp()
  const head = await app.request('/metrics', { method: 'HEAD', headers: admin })
  expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
    ...[200, 'text/plain; version=0.0.4; charset=utf-8', ''],
  ])
  expect((await app.request('/metrics', { method: 'HEAD' })).status).toBe(401)
  const post = await app.request('/metrics', { method: 'POST', headers: admin })
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,' +
  'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'

test.each<[string, string | undefined, Format]>([
  ['Prometheus', PROMETHEUS_3, 'openmetrics'],
  ['a client that accepts OpenMetrics', 'application/openmetrics-text', 'openmetrics'],
  ['a client that prefers plain text', 'application/openmetrics-text;q=0.2, text/plain', 'prometheus'],
  ['curl', '*/*', 'prometheus'],
  ['a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', 'prometheus'],
  ['a client that accepts an unknown format', 'application/vnd.google.protobuf', 'prometheus'],
  ['a client without an Accept header', undefined, 'prometheus'],
])('%s gets the matching format', async (_, accept, format) => {
  const headers = accept === undefined ? admin : { ...admin, accept }
  const response = await createApp().app.request('/metrics', { headers })
  expect(response.headers.get('content-type')).toMatch(
    format === 'openmetrics' ? /^application\/openmetrics-text; version=1\.0\.0/ : /^text\/plain; version=0\.0\.4/,
  )
  expect(parseExposition(await response.text(), format).has('couchdb_sidecar_build_info')).toBe(true)
})
