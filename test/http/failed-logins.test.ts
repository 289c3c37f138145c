/** The limits on failed logins, and their answers. CouchDB locks out a name for an address after five failures. */
import { Hono } from 'hono'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { adminOnly } from '../../sidecar/http/authenticate.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { createUser } from '../ddocs/users.ts'
import { couchUrl, needs } from '../support/couchdb.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { basic, createServerAdmin, loginStatus } from '../support/server-admin.ts'
import { createTestAuthenticate } from './test-authenticate.ts'

const MINUTE_MS = 60_000

function start(url = couchUrl()) {
  const clock = createManualClock()
  const requests = { count: 0 }
  const authenticate = createTestAuthenticate({ url, clock, onRequest: () => void (requests.count += 1) })
  const route = new Hono()
  route.get('/secret', adminOnly({ authenticate, roles: ['_admin', 'editor'] }), (c) => c.text('ok'))
  const app = createHttp({ routes: [route], log: pino({ level: 'silent' }) })
  const ask = async (authorization: string, client = '192.0.2.1', more: Readonly<Record<string, string>> = {}) => {
    const response = await app.request('/secret', { headers: { authorization, 'x-test-client': client, ...more } })
    return response.status === 429 ? `429 for ${response.headers.get('retry-after')} s` : response.status
  }
  return { clock, requests, ask }
}

async function editor() {
  const { name, password } = await createUser(['editor'])
  return { name, right: basic(name, password) }
}

test('a name can fail three times within five minutes, from all addresses together', async () => {
  const { clock, requests, ask } = start()
  const { name } = await editor()
  for (let i = 0; i < 3; i++) expect(await ask(basic(name, `wrong ${i}`), `192.0.2.${i}`)).toBe(401)
  expect(await ask(basic(name, 'wrong 4'), '192.0.2.4')).toBe('429 for 300 s')
  expect(requests.count).toBe(3)
  await clock.advance(4 * MINUTE_MS)
  expect(await ask(basic(name, 'wrong 5'), '192.0.2.5')).toBe('429 for 60 s')
  await clock.advance(MINUTE_MS)
  expect(await ask(basic(name, 'wrong 6'), '192.0.2.6')).toBe(401)
})

test('a client can fail ten times within five minutes with any names, without effect on other clients', async () => {
  const { clock, ask } = start()
  for (let i = 0; i < 10; i++) expect(await ask(basic(`unknown-${i}`, 'wrong'))).toBe(401)
  expect(await ask(basic('unknown-10', 'wrong'))).toBe('429 for 300 s')
  expect(await ask(basic('unknown-10', 'wrong'), '192.0.2.2')).toBe(401)
  await clock.advance(5 * MINUTE_MS)
  expect(await ask(basic('unknown-11', 'wrong'))).toBe(401)
})

test('concurrent wrong passwords have the same limit as consecutive ones', async () => {
  const { requests, ask } = start()
  const { name } = await editor()
  const all = Array.from({ length: 50 }, (_, i) => ask(basic(name, `wrong ${i}`), `192.0.2.${i}`))
  expect((await Promise.all(all)).filter((status) => status === 401)).toHaveLength(3)
  expect(requests.count).toBe(3)
})

test('many concurrent correct logins do not count as guesses', async () => {
  const { ask } = start()
  const editors = await Promise.all(Array.from({ length: 15 }, editor))
  expect(new Set(await Promise.all(editors.map(({ right }) => ask(right))))).toEqual(new Set([200]))
})

test('a thousand invented logins do not evict the cached login of a user', async () => {
  const { requests, ask } = start()
  const { right } = await editor()
  expect(await ask(right)).toBe(200)
  const invented = Array.from({ length: 1100 }, (_, i) =>
    ask('', `192.0.2.${i % 200}`, { cookie: `AuthSession=no-${i}` }),
  )
  expect(new Set(await Promise.all(invented))).not.toContain(200)
  const before = requests.count
  expect(before).toBe(1101)
  expect(await ask(right)).toBe(200)
  expect(requests.count).toBe(before)
})

// CouchDB's own clock is real: in a test at most four logins of one name may fail.
test('repeated logins with one old password count as one guess in five minutes', async () => {
  const { clock, requests, ask } = start()
  const { name, right } = await editor()
  for (let minute = 0; minute < 20; minute++) {
    expect(await ask(basic(name, 'old'))).toBe(401)
    if (minute % 10 === 9) expect(await ask(right)).toBe(200)
    await clock.advance(MINUTE_MS)
  }
  expect(requests.count).toBe(20 / 5 + 2)
})

test('a correct login works while other clients guess passwords for its name or from its address', async () => {
  const { clock, ask } = start()
  const { name, right } = await editor()
  expect(await ask(right)).toBe(200)
  for (let i = 0; i < 20; i++) await ask(basic(i < 5 ? name : `unknown-${i}`, `wrong ${i}`))
  for (let minute = 0; minute < 4; minute++) {
    await clock.advance(MINUTE_MS)
    expect(await ask(right)).toBe(200)
  }
  const { right: other } = await editor()
  expect(await ask(other)).toBe('429 for 60 s')
})

test('the exception for a correct login ends when the login is no longer correct', async () => {
  needs('node endpoints')
  const { clock, requests, ask } = start()
  const admin = await createServerAdmin()
  const { name, authorization: right } = admin
  expect(await ask(right)).toBe(200)
  await admin.remove()
  for (let i = 0; i < 3; i++) await ask(basic(name, `wrong ${i}`))
  await clock.advance(4 * MINUTE_MS)
  expect(await ask(right)).toBe(401)
  await clock.advance(5 * MINUTE_MS - 1)
  expect(await ask(right)).toBe(401)
  expect(requests.count).toBe(5)
})

test('the sidecar’s own login is compared locally and never sent to CouchDB, with any header format', async () => {
  needs('node endpoints')
  const admin = await createServerAdmin()
  const wrong = basic(admin.name, 'wrong').slice('Basic '.length)
  const headers = [
    ...['Basic ', 'basic ', 'BASIC ', 'Basic  ', '  Basic '].map((scheme) => scheme + wrong),
    ...['Basic\t', 'Basic, ', 'Basic'].map((scheme) => scheme + wrong),
    `Basic ${wrong} `,
    `Basic ${wrong.replace(/=+$/, '')}`,
    `Basic ${wrong}====`,
    `Basic ${wrong.slice(0, 4)} ${wrong.slice(4)}`,
    `Basic ${wrong.slice(0, 4)}*${wrong.slice(4)}`,
    `Basic ${wrong}, Basic ${wrong}`,
    ...[`${admin.name}:`, `${admin.name}::`, `${admin.name}`, `${admin.name}\0:x`, ` ${admin.name}:x`].map(
      (login) => `Basic ${Buffer.from(login).toString('base64')}`,
    ),
  ]
  for (const header of headers) {
    const { ask } = start(admin.url)
    for (let i = 0; i < 2; i++) expect(await ask(header, `192.0.2.${i}`)).not.toBe(200)
  }
  expect(await loginStatus(admin.authorization)).toBe(200)
  const { ask, requests, clock } = start(admin.url)
  for (let i = 0; i < 10; i++) expect(await ask(basic(admin.name, `wrong ${i}`))).toBe(401)
  expect(await ask(admin.authorization), 'the client has used all of its guesses').toBe('429 for 300 s')
  expect(await ask(admin.authorization, '192.0.2.2')).toBe(200)
  await clock.advance(5 * MINUTE_MS)
  expect(await ask(admin.authorization)).toBe(200)
  expect(requests.count).toBe(12)
  expect(await loginStatus(admin.authorization)).toBe(200)
})

test('a password of invalid UTF-8 is treated like any other', async () => {
  const { ask } = start()
  expect(await ask(`Basic ${Buffer.from([0xff, 0x3a, 0xfe]).toString('base64')}`)).toBe(401)
})
