/** The inbox for pages of other sites, in a browser, and its answers to preflight requests. */
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { serveApp } from '../http/serve-app.ts'
import { openBrowser } from '../support/browser.ts'
import { needs } from '../support/couchdb.ts'
import { newDevice, newSecret, startInbox } from './inbox-rig.ts'

async function startOtherSite(): Promise<string> {
  const app = new Hono().get('/', (c) => c.html('<title>an app</title>'))
  const listening = await serveApp(app)
  return listening.url
}

test('a page of another site can write and read the status, even with credentials that PouchDB sends', async () => {
  needs('browser')
  const rig = await startInbox({ perMinute: 1, limit: 1 })
  const secret = newSecret()
  const device = newDevice(secret)
  const page = await (await openBrowser()).newPage()
  await page.goto(await startOtherSite())
  const ask = (path: string, init: object) =>
    page.evaluate(
      `fetch(${JSON.stringify(rig.url + path)}, ${JSON.stringify({ credentials: 'include', ...init })}).then(
        async (answer) => ({ status: answer.status, after: answer.headers.get('retry-after'), body: await answer.json() }))`,
    )
  const post = (doc: object) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(doc),
  })
  expect(await ask('/', {})).toMatchObject({ status: 200, body: { db_name: 'inbox' } })
  expect(await ask('/_local/x', {})).toMatchObject({ status: 404 })
  const put = { ...post({ docs: [{ ...device, _rev: '1-a' }], new_edits: false }) }
  expect(await ask('/_bulk_docs', put)).toMatchObject({ status: 201, body: [] })
  const bearer = { headers: { authorization: `Bearer ${secret}` } }
  expect(await ask(`/${device._id}`, bearer)).toMatchObject({ status: 200, body: { state: 'new' } })
  expect(await ask('/_bulk_docs', post({ docs: Array(20).fill(device) }))).toMatchObject({ status: 429, after: '60' })
  expect(await ask('/_all_docs', {})).toMatchObject({ status: 403, body: { error: 'forbidden' } })
})

test('a preflight for the inbox’s methods is answered, and does not count', async () => {
  const rig = await startInbox({ perMinute: 1 })
  const headers = { origin: 'https://app.example', 'access-control-request-method': 'PUT' }
  for (let count = 0; count < 50; count++) {
    const { status, headers: received } = await rig.send('/d', { method: 'OPTIONS', headers })
    expect(status).toBe(204)
    expect(received.get('access-control-allow-origin')).toBe('https://app.example')
    expect(received.get('access-control-allow-credentials')).toBe('true')
    expect(received.get('access-control-allow-methods')).toBe('GET,HEAD,POST,PUT')
    expect(received.get('access-control-allow-headers')).toBe('Accept,Authorization,Content-Type')
  }
  expect((await rig.post({})).status).toBe(403)
})

test('answers and refusals allow the requesting origin, and are not cached', async () => {
  const rig = await startInbox()
  for (const [path, status] of [
    ['', 200],
    ['/d', 404],
    ['/_changes', 403],
  ] as const) {
    const answer = await rig.send(path, { headers: { origin: 'https://app.example' } })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(answer.headers.get('vary')).toContain('Origin')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  }
  expect((await rig.send('')).headers.get('access-control-allow-origin')).toBeNull()
})
