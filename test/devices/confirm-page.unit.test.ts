import { pino } from 'pino'
import { beforeEach, describe, expect, it } from 'vitest'
import { CouchError } from '../../sidecar/couch/couch-errors.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { confirmPage } from '../../sidecar/devices/confirm-page.ts'
import { memoryConfirmations, type MemoryConfirmations } from './memory-confirmations.ts'

const LINK = '/confirm/d1/c0de-of-the-link'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const JSON_ONLY = { accept: 'application/json' }

let logged: string
let confirmations: MemoryConfirmations
let app: ReturnType<typeof createHttp>
beforeEach(() => {
  logged = ''
  const log = pino({ level: 'trace' }, { write: (line: string) => void (logged += line) })
  confirmations = memoryConfirmations({ deviceId: 'd1', confirmCode: 'c0de-of-the-link', deviceCode: '1234' })
  app = createHttp({ routes: [confirmPage({ confirmations, log })], log })
})

const get = (path: string, init: RequestInit = {}) => app.request(path, { headers: HTML, ...init })

const post = (body: string, { path = LINK, headers = {} }: { path?: string; headers?: Record<string, string> } = {}) =>
  app.request(path, { method: 'POST', body, headers: { ...FORM, ...HTML, ...headers } })

const json = (response: Response) => response.json() as Promise<{ error?: string; reason?: string; ok?: boolean }>

describe('GET of a confirm link', () => {
  it('GET shows a form for the device code and confirms nothing', async () => {
    const response = await get(LINK)
    expect(response.status).toBe(200)
    const page = await response.text()
    expect(page).toContain('<form method="post">')
    expect(page).toMatch(/<label for="device_code">/)
    expect(confirmations.clicks).toEqual([])
  })

  it('GET of a valid link names the device and the address, escaped', async () => {
    confirmations.followed = { kind: 'open', name: 'Ann’s <phone>', owner: 'ann@example.com' }
    const page = await (await get(LINK)).text()
    expect(page).toContain('<strong>Ann’s &lt;phone&gt;</strong>')
    expect(page).toContain('<strong>ann@example.com</strong>')
    const other = await (await get('/confirm/d1/another-code')).text()
    expect(other).not.toContain('ann@example.com')
    expect(confirmations.clicks).toEqual([])
  })

  it('GET of a used or expired link shows that state', async () => {
    confirmations.followed = { kind: 'used', name: undefined, owner: 'ann@example.com' }
    expect(await (await get(LINK)).text()).toContain('This link was used')
    confirmations.followed = { kind: 'expired' }
    const expired = await get(LINK)
    expect([expired.status, await expired.text()]).toEqual([410, expect.stringContaining('This link has expired')])
  })

  it('GET shows the form also while CouchDB is unavailable', async () => {
    confirmations.followed = new CouchError('unreachable', {
      request: 'GET /control/secret-id',
      reason: 'secret reason',
    })
    const response = await get(LINK)
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Confirm your device')])
  })

  it('GET of any unknown link shows the same page', async () => {
    const page = await (await get(LINK)).text()
    for (const path of ['/confirm/unknown/x', '/confirm/%2e%2e%2f_users/%00', `/confirm/d1/${'x'.repeat(9000)}`]) {
      expect(await (await get(path)).text(), path).toBe(page)
    }
  })

  it.each(['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'PROPFIND'])(
    '%s of a confirm link never confirms',
    async (method) => {
      const response = await get(LINK, { method })
      expect(response.status).toBe(method === 'HEAD' ? 200 : 405)
      expect(response.headers.get('allow')).toBe(method === 'HEAD' ? null : 'GET, HEAD, POST')
      expect(confirmations.clicks).toEqual([])
    },
  )

  it.each(['/confirm', '/confirm/', '/confirm/d1', '/confirm/d1/', '/confirm/d1/c/x', '/confirm/../_up/x'])(
    'the page is not served at %s',
    async (path) => {
      expect((await get(path)).status).toBe(404)
    },
  )
})

describe('POST of the device code', () => {
  it('POST passes the decoded ids of the link to the confirmations', async () => {
    await post('device_code=+12+%C3%BC34+', { path: '/confirm/device%3A%C3%BC%2F..%2F1/a%20b' })
    expect(confirmations.clicks).toEqual([{ deviceId: 'device:ü/../1', confirmCode: 'a b', deviceCode: '12 ü34' }])
  })

  it('POST with the right code confirms, and shows that in a page', async () => {
    const response = await post('device_code=1234')
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('Your device is confirmed')
  })

  it('POST shows generated credentials, escaped, and asks the browser not to store them', async () => {
    confirmations.credentials = { user: 'u<1>', password: 'p"&' }
    const response = await post('device_code=1234')
    const page = await response.text()
    expect(page).toContain('<code>u&lt;1&gt;</code>')
    expect(page).toContain('<code>p&quot;&amp;</code>')
    expect(page).toContain('only this once')
    expect(page).toContain('Copy the password')
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  it('POST with a wrong code, a used link or an unknown link gives exactly the same page', async () => {
    const wrong = await post('device_code=9999')
    const unknown = await post('device_code=1234', { path: '/confirm/d2/other' })
    await post('device_code=1234')
    const used = await post('device_code=1234')
    const page = await wrong.text()
    expect(page).toContain('Look at the code on the device')
    expect(page).toContain('ask for a new mail')
    for (const response of [wrong, unknown, used]) expect(response.status).toBe(403)
    for (const response of [unknown, used]) expect(await response.text()).toBe(page)
    expect([...unknown.headers]).toEqual([...wrong.headers])
  })

  it('POST to an expired link shows how to get another', async () => {
    confirmations.next = { kind: 'expired' }
    const response = await post('device_code=1234')
    expect(response.status).toBe(410)
    expect(await response.text()).toContain('Request a new mail on the device')
  })

  it('POST during a pending confirmation gives a page with a button to send the code again', async () => {
    confirmations.next = { kind: 'pending' }
    const response = await post('device_code=12%22%3E%3Cb%3E')
    expect(response.status).toBe(202)
    expect(await response.text()).toContain('name="device_code" value="12&quot;&gt;&lt;b&gt;"')
  })

  it.each(['unreachable', 'timeout', 'overloaded', 'unauthorized'] as const)(
    'POST while CouchDB is unavailable (%s) may be retried',
    async (code) => {
      confirmations.next = new CouchError(code, { request: 'GET /control/secret-id', reason: 'secret reason' })
      const response = await post('device_code=1234')
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('5')
      const page = await response.text()
      expect(page).toContain('try again in a moment')
      expect(page).not.toContain('secret')
    },
  )

  it('POST that meets an unexpected error gives a page without its text or stack', async () => {
    confirmations.next = new TypeError('secret detail')
    const response = await post('device_code=1234')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toMatch(/secret|at .*\.ts/)
    expect(logged).toContain('secret detail')
  })
})

describe('a program that accepts JSON', () => {
  const ask = (body = 'device_code=1234') => post(body, { headers: JSON_ONLY })

  it('a program gets ok, with generated credentials', async () => {
    confirmations.credentials = { user: 'u', password: 'p' }
    const response = await ask()
    expect(response.status).toBe(200)
    expect(await json(response)).toEqual({ ok: true, user: 'u', password: 'p' })
  })

  it('a program may send JSON', async () => {
    const headers = { ...JSON_ONLY, 'content-type': 'application/json; charset=utf-8' }
    expect((await post('{"device_code":"1234"}', { headers })).status).toBe(200)
  })

  it.each([
    [{ kind: 'refused' }, 403, 'forbidden'],
    [{ kind: 'expired' }, 410, 'expired'],
    [new CouchError('unreachable', { request: 'GET /control' }), 503, 'service_unavailable'],
    [new Error('secret'), 500, 'internal_server_error'],
  ] as const)('a program gets error and reason in CouchDB’s format: %o', async (next, status, error) => {
    confirmations.next = next
    const response = await ask()
    expect(response.status).toBe(status)
    expect(await json(response)).toEqual({ error, reason: expect.not.stringContaining('secret') as string })
  })

  it('a program gets pending while the confirmation is pending', async () => {
    confirmations.next = { kind: 'pending' }
    const response = await ask()
    expect(response.status).toBe(202)
    expect(await json(response)).toMatchObject({ pending: true })
  })
})

describe('a malformed request', () => {
  const long = 'x'.repeat(65)
  it.each([
    ['no field', '', FORM, 400],
    ['an empty field', 'device_code=++', FORM, 400],
    ['the field twice', 'device_code=1&device_code=2', FORM, 400],
    ['another field', 'code=1', FORM, 400],
    ['a field that is too long', `device_code=${long}`, FORM, 400],
    ['a control character', 'device_code=1%002', FORM, 400],
    ['broken JSON', '{"device_code":', { 'content-type': 'application/json' }, 400],
    ['JSON null', 'null', { 'content-type': 'application/json' }, 400],
    ['a number for the code', '{"device_code":1234}', { 'content-type': 'application/json' }, 400],
    ['a list for the code', '{"device_code":["1234"]}', { 'content-type': 'application/json' }, 400],
    ['a lone surrogate', '{"device_code":"\\ud800"}', { 'content-type': 'application/json' }, 400],
    ['plain text', 'device_code=1234', { 'content-type': 'text/plain' }, 415],
    ['a multipart form', 'device_code=1234', { 'content-type': 'multipart/form-data; boundary=x' }, 415],
    ['a body of 1 MB', `device_code=${'1'.repeat(1_000_000)}`, FORM, 413],
  ])('a request with %s is refused before it reaches the confirmations', async (_, body, headers, status) => {
    const page = await post(body, { headers })
    expect(page.status).toBe(status)
    expect(page.headers.get('content-type')).toContain('text/html')
    const program = await post(body, { headers: { ...headers, ...JSON_ONLY } })
    expect(await json(program)).toEqual({ error: expect.any(String) as string, reason: expect.any(String) as string })
    expect(confirmations.clicks).toEqual([])
  })

  it.each([
    ['an id that no document has', `/confirm/${'d'.repeat(257)}/c`],
    ['a code that no link has', `/confirm/d1/${'c'.repeat(257)}`],
    ['a control character in the id', '/confirm/d%00/c'],
  ])('a request with %s is refused like a wrong code', async (_, path) => {
    const response = await post('device_code=1234', { path })
    expect(response.status).toBe(403)
    expect(await response.text()).toBe(await (await post('device_code=9999')).text())
  })

  it('a request with a broken escape in the link is refused like a wrong code', async () => {
    expect((await post('device_code=1234', { path: '/confirm/%ff%/%zz' })).status).toBe(403)
  })
})

describe('a cross-site request', () => {
  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: 'http://localhost' },
    { origin: 'https://evil.example' },
    { origin: 'http://localhost:81' },
    { origin: 'garbage' },
  ])('a cross-site request is refused: %o', async (headers) => {
    const response = await post('device_code=1234', { headers: { host: 'localhost', ...headers } })
    expect(response.status).toBe(403)
    expect(confirmations.clicks).toEqual([])
  })

  it.each([
    { 'sec-fetch-site': 'same-origin', origin: 'https://behind.a.proxy' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://sidecar.example', host: 'sidecar.example' },
    { origin: 'null' },
    {},
  ])('a request from the own page is accepted: %o', async (headers) => {
    expect((await post('device_code=1234', { headers })).status).toBe(200)
  })
})

describe('every answer of the confirm page', () => {
  it.each([
    ['GET', LINK],
    ['POST', LINK],
    ['PUT', LINK],
    ['GET', '/nothing'],
  ])('headers allow no external content and no caching: %s %s', async (method, path) => {
    const { headers } = await get(path, { method })
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
  })

  it('the log contains none of the codes', async () => {
    confirmations.credentials = { user: 'u', password: 'pa55word' }
    await get(`${LINK}?x=query-secret`)
    await post('device_code=1234')
    await post('device_code=1234', { path: '/confirm/d1/c0de-of-the-link/more' })
    confirmations.next = new Error('failed')
    await post('device_code=1234')
    expect(logged).toContain('/confirm/…')
    expect(logged).not.toMatch(/c0de-of-the-link|1234|query-secret|pa55word/)
  })
})
