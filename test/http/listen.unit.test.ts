import { once } from 'node:events'
import { Agent, get, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { Hono } from 'hono'
import { pino } from 'pino'
import { expect, it, onTestFinished } from 'vitest'
import { ConfigError } from '../../sidecar/core/errors.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { listen, type ListenOptions } from '../../sidecar/http/listen.ts'
import { serveApp } from './serve-app.ts'
import { eventually } from '../support/eventually.ts'

const log = pino({ level: 'silent' })

function createApp() {
  const route = new Hono()
  route.get('/hello', (c) => c.text('hello'))
  route.post('/echo', async (c) => c.text(await c.req.text()))
  route.get('/forever', (c) => c.body(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('begun')) })))
  return createHttp({ routes: [route], log })
}

const start = (options: Partial<ListenOptions> = {}) => serveApp(createApp(), options)

/** A raw connection that has sent these bytes, and the answer so far. */
async function speak(port: number, bytes: string): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => void (received += chunk))
  socket.on('error', () => {}) // these tests expect the server to cut the connection
  await once(socket, 'connect')
  socket.write(bytes)
  return { socket, received: () => received }
}

it('reports its address', async () => {
  const { url, port } = await start()
  expect(url).toBe(`http://127.0.0.1:${port}`)
  expect(await (await fetch(`${url}/hello`)).text()).toBe('hello')
})

it('reports an address that a browser can use if it listens on all interfaces', async () => {
  const { url, port } = await start({ host: '0.0.0.0' })
  expect(url).toBe(`http://localhost:${port}`)
})

it.each([
  ['SIDECAR_PORT', async () => ({ port: (await start()).port })],
  ['SIDECAR_HOST', () => Promise.resolve({ host: '192.0.2.1' })],
])('reports that %s must change if the address is not available', async (setting, options) => {
  const thrown = await start(await options()).catch((thrown: unknown) => thrown)
  expect(thrown).toBeInstanceOf(ConfigError)
  expect((thrown as ConfigError).faults).toEqual([expect.stringContaining(`${setting}: expected`)])
})

it('reads a body in pieces, up to its limit', async () => {
  const { url } = await start()
  const send = async (pieces: number) => {
    const sending = request(`${url}/echo`, { method: 'POST', agent: false })
    sending.on('error', () => {}) // the rest of a body that is too large
    const answer = once(sending, 'response') as Promise<[Parameters<typeof text>[0] & { statusCode: number }]>
    for (let piece = 0; piece < pieces; piece++) sending.write('x'.repeat(1024))
    sending.end()
    const [response] = await answer
    return { status: response.statusCode, body: await text(response) }
  }
  expect(await send(16)).toEqual({ status: 200, body: 'x'.repeat(16 * 1024) })
  expect((await send(1024)).status).toBe(413)
})

it('refuses a body that is announced as too large without reading it', async () => {
  const { port } = await start()
  const { received } = await speak(port, 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n')
  await eventually(() => expect(received()).toMatch(/^HTTP\/1.1 413 /))
})

it.each([
  ['headers', 'GET /hello HTTP/1.1\r\nHost: x\r\n'],
  ['body', 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx'],
])('disconnects a client that never ends its %s', async (_, bytes) => {
  const { port } = await start({ headersMs: 100, requestMs: 200 })
  const { socket } = await speak(port, bytes)
  await once(socket, 'close')
})

it.each([
  ['nonsense', 'nonsense\r\n\r\n'],
  ['headers without end', `GET /hello HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
  ['a path with a backslash', 'GET /hello\\x HTTP/1.1\r\nHost: x/\r\nConnection: close\r\n\r\n'],
  ['no host', 'GET /hello HTTP/1.1\r\n\r\n'],
])('answers %s with a refusal and keeps running', async (_, bytes) => {
  const { port, url } = await start()
  const { received } = await speak(port, bytes)
  await eventually(() => expect(received()).toMatch(/^HTTP\/1.1 4\d\d /))
  expect(received()).not.toContain('    at ')
  expect((await fetch(`${url}/hello`)).status).toBe(200)
})

it('closes idle keep-alive connections at once on close', async () => {
  const listening = await start()
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  const [response] = (await once(get(`${listening.url}/hello`, { agent }), 'response')) as [Parameters<typeof text>[0]]
  await text(response)
  const [kept] = Object.values(agent.freeSockets).flat()
  const ended = once(kept as Socket, 'close')
  await listening.close()
  await ended
})

it('cuts an endless answer on close', async () => {
  const listening = await start()
  const { socket, received } = await speak(listening.port, 'GET /forever HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => expect(received()).toContain('begun'))
  const ended = once(socket, 'close')
  await listening.close()
  await ended
})

it('completes an answer in progress on close', async () => {
  const route = new Hono()
  let answer = () => {}
  const requested = new Promise<void>((seen) => {
    route.get('/slow', async (c) => {
      seen()
      await new Promise<void>((resolve) => (answer = resolve))
      return c.text('done')
    })
  })
  const listening = await serveApp(createHttp({ routes: [route], log }))
  const requesting = fetch(`${listening.url}/slow`)
  await requested
  const closing = listening.close()
  answer()
  expect(await (await requesting).text()).toBe('done')
  await closing
})

it('answers a request that arrived before the application was ready', async () => {
  const listening = await listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => listening.close())
  const requesting = fetch(`${listening.url}/hello`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  listening.serve(createApp())
  expect(await (await requesting).text()).toBe('hello')
})
