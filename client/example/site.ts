/**
 * Serves a page, and forwards the requests for the sidecar and for CouchDB. So all three have one origin, and need no
 * CORS. It is for tests and for trying the example. In production, your proxy does the same.
 */
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SiteOptions {
  /** The content and the content type of each file, by path. */
  readonly files: Readonly<Record<string, { readonly type: string; readonly body: string | Uint8Array }>>
  /** The target of each forwarded path, such as `http://localhost:5985/inbox` for `/inbox`. */
  readonly proxies: Readonly<Record<string, string>>
  /** 0: any free port. */
  readonly port: number
}

export interface Site {
  readonly url: string
  close(): Promise<void>
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export async function serveSite({ files, proxies, port }: SiteOptions): Promise<Site> {
  const server = createServer((requested, answer) => {
    const path = new URL(requested.url ?? '/', 'http://localhost').pathname
    const proxy = Object.keys(proxies).find((prefix) => path === prefix || path.startsWith(`${prefix}/`))
    if (proxy !== undefined) pass(requested, answer, `${proxies[proxy]}${(requested.url ?? '').slice(proxy.length)}`)
    else give(answer, files[path])
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    close: () => close(server),
  }
}

function give(answer: ServerResponse, file: SiteOptions['files'][string] | undefined): void {
  const headers = {
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  }
  answer.writeHead(file ? 200 : 404, { ...headers, 'Content-Type': file?.type ?? 'text/plain' })
  answer.end(file?.body ?? 'There is no such page.')
}

function pass(requested: IncomingMessage, answer: ServerResponse, url: string): void {
  const { host: _host, connection: _connection, ...headers } = requested.headers
  const passed = request(url, { method: requested.method, headers }, (got) => {
    const { connection: _own, ...headers } = got.headers
    answer.writeHead(got.statusCode ?? 502, headers)
    got.pipe(answer)
    got.on('error', () => answer.destroy())
  })
  passed.on('error', () => {
    if (answer.headersSent) answer.destroy()
    else answer.writeHead(502).end()
  })
  answer.on('close', () => passed.destroy())
  requested.pipe(passed)
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
