import { Hono } from 'hono'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { CouchError } from '../../sidecar/couch/couch-errors.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { up } from '../../sidecar/http/up.ts'

const log = pino({ level: 'silent' })

function createApp(...routes: Hono[]) {
  return createHttp({ routes, log })
}

const failing = (thrown: Error) => {
  const app = new Hono()
  app.get('/fails', () => {
    throw thrown
  })
  return createApp(app)
}

it('answers an unknown path in the format of CouchDB', async () => {
  const response = await createApp().request('/nothing')
  expect(response.status).toBe(404)
  expect(await response.json()).toEqual({ error: 'not_found', reason: 'There is no such page.' })
})

it('answers an unknown path with a page for a browser', async () => {
  const response = await createApp().request('/nothing', { headers: { accept: 'text/html' } })
  expect(response.status).toBe(404)
  expect(await response.text()).toContain('<h1>There is no such page</h1>')
})

it.each([
  [new Error('secret at /srv/app.ts:1'), 500, 'internal_server_error'],
  [new CouchError('conflict', { request: 'PUT /secret' }), 500, 'internal_server_error'],
  [new CouchError('unreachable', { request: 'PUT /secret' }), 503, 'service_unavailable'],
])('hides internal errors from clients: %o', async (thrown, status, error) => {
  const response = await failing(thrown).request('/fails')
  expect(response.status).toBe(status)
  const body = (await response.json()) as Record<string, string>
  expect(Object.keys(body)).toEqual(['error', 'reason'])
  expect(body.error).toBe(error)
  expect(body.reason).not.toMatch(/secret|\.ts/)
})

it('logs no error after the client has disconnected', async () => {
  const lines: string[] = []
  const route = new Hono().get('/fails', () => {
    throw new Error('given up')
  })
  const app = createHttp({ routes: [route], log: pino({ level: 'error' }, { write: (line) => void lines.push(line) }) })
  await app.request('/fails', { signal: AbortSignal.abort() })
  expect(lines).toEqual([])
  await app.request('/fails')
  expect(lines).toHaveLength(1)
})

it('refuses a body of more than 16 KB on every route', async () => {
  const echo = new Hono()
  echo.post('/echo', async (c) => c.text(await c.req.text()))
  const post = (bytes: number) => createApp(echo).request('/echo', { method: 'POST', body: 'x'.repeat(bytes) })
  expect(await (await post(16 * 1024)).text()).toHaveLength(16 * 1024)
  const response = await post(16 * 1024 + 1)
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ error: 'too_large' })
})

it('keeps the headers that a route sets itself', async () => {
  const own = new Hono().get('/own', (c) => c.text('own', 200, { 'Content-Security-Policy': "default-src 'self'" }))
  const { headers } = await createApp(own).request('/own')
  expect(headers.get('content-security-policy')).toBe("default-src 'self'")
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

it('reports whether it is up, and the reason if not', async () => {
  let problems: string[] = []
  const app = createApp(up({ problems: () => problems }))
  const well = await app.request('/_up')
  expect([well.status, await well.json()]).toEqual([200, { status: 'ok' }])

  problems = ['no answer from CouchDB']
  const ill = await app.request('/_up')
  expect(ill.status).toBe(503)
  expect(await ill.json()).toEqual({ status: 'unavailable', reasons: ['no answer from CouchDB'] })
  const live = await app.request('/_live')
  expect([live.status, await live.json()]).toEqual([200, { status: 'ok' }]) // a restart would not help
})

it.each(['/_up', '/_live'])('%s allows only reads', async (path) => {
  const response = await createApp(up({ problems: () => [] })).request(path, { method: 'POST' })
  expect(response.status).toBe(405)
  expect(response.headers.get('allow')).toBe('GET, HEAD')
  expect(await response.json()).toEqual({ error: 'method_not_allowed', reason: 'Only GET,HEAD allowed' })
})
