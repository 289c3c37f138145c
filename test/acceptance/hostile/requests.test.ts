/** Requests that no browser sends. Each gets a clear refusal, and none crashes the sidecar. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { newDevice, untilState, linkIn } from '../registration.ts'
import { openStage, type Stage } from './stage.ts'

const form = 'application/x-www-form-urlencoded'
const json = 'application/json'

let stage: Stage
/** A valid link, whose requests are refused for their form only. */
let link: string
beforeAll(async () => {
  stage = await openStage()
  const device = newDevice()
  await stage.control.member.put(device)
  await untilState(stage, device._id, 'confirming')
  link = linkIn((await stage.mailsTo(device.owner))[0]?.text, stage.sidecar.url)
})
afterAll(() => stage.close())

async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.on('error', () => {}) // the server may reset the connection
  onTestFinished(() => void socket.destroy())
  return socket
}

/** Sends raw bytes, and resolves with the status of the answer, even if it ends in a reset. */
async function statusOf(bytes: string): Promise<number> {
  const socket = await connectTo(stage.sidecar.url)
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
}

const head = (method: string, path: string, ...headers: string[]) =>
  [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n')

const paths: readonly (readonly [path: string, status: number])[] = [
  ['/confirm/../../etc/passwd', 404],
  ['/confirm/%2e%2e/x', 404],
  ['/../../../etc/passwd', 404],
  ['/_mail/../../package.json', 404],
  ['//confirm//x//y', 404],
  ['/confirm/a/b/c', 404],
  ['/confirm/', 404],
  ['/CONFIRM/a/b', 404],
  ['/confirm/..%2f..%2f_users/x', 403],
  ['/confirm/_all_docs/x', 403],
  ['/confirm/_design%2fdocstate/x', 403],
  ['/confirm/a/b%00', 403],
  ['/confirm/%/%', 403],
  ['/confirm/%ff%fe/%80', 403],
  ['/confirm/%u0000/%ud800', 403],
  [`/confirm/${'x'.repeat(10_000)}/y`, 403],
  [`/confirm/x/${'y'.repeat(10_000)}`, 403],
  [`/confirm/${'x'.repeat(20_000)}/y`, 431],
  ['*', 400],
]

describe('an unusual path is refused, and confirms nothing', () => {
  test.each(paths.map(([path, status]) => [path.slice(0, 40), path.length, path, status] as const))(
    '%s (%i letters)',
    async (_title, _length, path, status) => {
      const body = 'device_code=1234'
      const request = head('POST', path, `Content-Type: ${form}`, `Content-Length: ${body.length}`) + body
      expect(await statusOf(request)).toBe(status)
    },
  )
})

test('caught mails are shown under the host names of this machine only', async () => {
  const requested = (path: string, host: string) =>
    statusOf(head('GET', path).replace('Host: localhost', `Host: ${host}`))
  const port = new URL(stage.sidecar.url).port
  needs('mail catcher')
  for (const path of ['/_mail', '/_mail/1', '/_mail/api/mails']) {
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, '[::1]:5985', 'LOCALHOST']) {
      expect({ path, host, status: await requested(path, host) }).toEqual({ path, host, status: 200 })
    }
    for (const host of [
      'evil.example',
      `127.0.0.1.evil.example:${port}`,
      'localhost.evil.example',
      '127.evil',
      '[::2]',
    ]) {
      expect({ path, host, status: await requested(path, host) }).toEqual({ path, host, status: 403 })
    }
  }
  expect(await requested('/confirm/a/b', 'sidecar.example.com')).toBe(200)
})

describe('input that is not an HTTP request', () => {
  test.each([
    ['SMTP', 'EHLO example.com\r\n\r\n'],
    ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000'],
    ['an unknown method', head('CONFIRM', '/confirm/a/b')],
    ['no host', 'GET /_up HTTP/1.1\r\n\r\n'],
    ['two lengths', head('POST', '/confirm/a/b', 'Content-Length: 1', 'Content-Length: 2')],
    ['a negative length', head('POST', '/confirm/a/b', 'Content-Length: -1')],
    [
      'a length and a chunked encoding',
      head('POST', '/confirm/a/b', 'Content-Length: 4', 'Transfer-Encoding: chunked'),
    ],
    ['a chunk with an invalid size', `${head('POST', '/confirm/a/b', 'Transfer-Encoding: chunked')}zz\r\n`],
    ['a header with a line break', head('GET', '/_up', 'X: a\nSet-Cookie: b\rc')],
    ['a header without a name', head('GET', '/_up', ': a')],
  ])('%s is refused', async (_, bytes) => {
    expect(await statusOf(bytes)).toBe(400)
  })

  test('endless headers are refused', async () => {
    expect(await statusOf(head('GET', '/_up', ...Array.from({ length: 2000 }, (_, i) => `X-${i}: 12345678`)))).toBe(431)
  })
})

describe('a malformed form is refused', () => {
  test.each<[string, string | undefined, string, number]>([
    ['no content type', undefined, 'device_code=1234', 415],
    ['plain text', 'text/plain', 'device_code=1234', 415],
    ['a multipart body', 'multipart/form-data; boundary=x', '--x--', 415],
    ['XML', 'application/xml', '<device_code>1234</device_code>', 415],
    ['an empty form', form, '', 400],
    ['another field', form, 'code=1234', 400],
    ['an empty code', form, 'device_code=', 400],
    ['blanks', form, 'device_code=+++', 400],
    ['the code twice', form, 'device_code=1234&device_code=1234', 400],
    ['the code as a list', form, 'device_code[]=1234', 400],
    ['a NUL', form, 'device_code=1234%00', 400],
    ['a line break', form, 'device_code=12%0D%0A34', 400],
    ['an incomplete escape', form, 'device_code=%', 403],
    ['an invalid UTF-8 sequence', form, 'device_code=%ff', 403],
    ['a code of 65 digits', form, `device_code=${'1'.repeat(65)}`, 400],
    ['seventeen kilobytes', form, `device_code=${'1'.repeat(17_000)}`, 413],
    ['ten megabytes', form, `device_code=1234&x=${'1'.repeat(10_000_000)}`, 413],
    ['malformed JSON', json, '{', 400],
    ['a JSON array', json, '[{"device_code":"1234"}]', 400],
    ['JSON null', json, 'null', 400],
    ['a code that is a number', json, '{"device_code":1234}', 400],
    ['a code that is an object', json, '{"device_code":{"$gt":""}}', 400],
    ['a code that is an array', json, '{"device_code":["1234"]}', 400],
    ['a code in __proto__', json, '{"__proto__":{"device_code":"1234"}}', 400],
    ['a lone surrogate', json, '{"device_code":"12\\ud80034"}', 400],
    ['deep nesting', json, `{"device_code":${'['.repeat(7000)}${']'.repeat(7000)}}`, 400],
  ])('%s', async (_, type, body, expected) => {
    const headers = { accept: json, ...(type === undefined ? {} : { 'content-type': type }) }
    const bytes = new TextEncoder().encode(body)
    const answer = await fetch(link, { method: 'POST', headers, body: bytes })
    expect(answer.status).toBe(expected)
    const said = (await answer.json()) as { error: string; reason: string }
    expect(said).toEqual({
      error: expect.stringMatching(/^\w+$/) as string,
      reason: expect.stringMatching(/\w+ \w+/) as string,
    })
    expect(JSON.stringify(said)).not.toMatch(/ {4}at |node_modules/)
  })

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'nonsense' },
  ])('a form from another site is refused: %j', async (headers) => {
    const answer = await fetch(link, { method: 'POST', headers, body: new URLSearchParams({ device_code: '1234' }) })
    expect(answer.status).toBe(403)
  })
})

test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'SEARCH'])(
  'the method %s is not allowed',
  async (method) => {
    for (const path of [new URL(link).pathname, '/_up']) {
      const socket = await statusOf(head(method, path))
      expect({ method, path, socket }).toEqual({ method, path, socket: 405 })
    }
  },
)

test('every refusal has the security headers', async () => {
  for (const [method, path] of [
    ['GET', '/nowhere'],
    ['POST', '/confirm/a/b'],
    ['PUT', '/_up'],
  ] as const) {
    const { headers } = await fetch(`${stage.sidecar.url}${path}`, { method, headers: { accept: 'text/html' } })
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
  }
})

test('slow clients do not delay others, and their connections are closed', async () => {
  const slow = await Promise.all(Array.from({ length: 50 }, () => connectTo(stage.sidecar.url)))
  for (const socket of slow) socket.resume().write('POST /confirm/a/b HTTP/1.1\r\nHost: localhost\r\nX-')
  const trickle = setInterval(() => slow.forEach((socket) => socket.writable && socket.write('x')), 500)
  onTestFinished(() => clearInterval(trickle))
  await stage.registerGoodDevice()
  await eventually(() => expect(slow.filter(({ closed }) => !closed)).toEqual([]))
})

test('the link still works after all these requests', async () => {
  const body = new URLSearchParams({ device_code: '1234' })
  const answer = await fetch(link, { method: 'POST', headers: { accept: json }, body })
  expect(await answer.json()).toMatchObject({ ok: true })
})
