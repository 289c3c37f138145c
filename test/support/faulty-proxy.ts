import { once } from 'node:events'
import http from 'node:http'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { couchUrl } from './couchdb.ts'
import { pass, type Fault } from './faults.ts'
import { listenOnOwnPort } from './free-port.ts'
import { openExchange, type SeenRequest } from '../../sidecar/testing/proxy-exchange.ts'

export * from './faults.ts'
export type { SeenRequest } from '../../sidecar/testing/proxy-exchange.ts'

export interface FaultyProxy {
  /** The URL of the proxy with the server's credentials. */
  readonly url: string
  /** Every request so far, in the order of arrival, with any result. */
  readonly requests: readonly SeenRequest[]
  /** The number of open client connections, used or idle. */
  readonly openConnections: number
  /** Chooses the fault of every request from now on; `undefined` passes the request. Replaces the previous plan. */
  plan(choose: (request: SeenRequest) => Fault | undefined): void
  /** Applies to the next request that `matches`, before any plan. Several faults queue. */
  next(fault: Fault, matches?: (request: SeenRequest) => boolean): void
  /** Stops forwarding, also within running answers, and keeps every connection open; `false` resumes. */
  freeze(frozen: boolean): void
  /** Breaks every connection and accepts new ones. */
  dropConnections(): void
  /** Breaks every connection and refuses new ones. */
  down(): Promise<void>
  /** Accepts connections again after `down`, on the same port. */
  up(): Promise<void>
}

/**
 * A proxy in front of the real server that passes everything by default. It closes at the end of the test.
 *
 * @example
 * const proxy = await startFaultyProxy()
 * const couch = createTestCouch({ url: proxy.url })
 * proxy.plan((request) => (request.path.endsWith('_bulk_docs') ? cutAfterUpstream : undefined))
 * proxy.next(refuse(503))
 */
export async function startFaultyProxy(upstream: string = couchUrl()): Promise<FaultyProxy> {
  const target = new URL(new URL(upstream).origin) // without the credentials: each client sends its own
  const requests: SeenRequest[] = []
  const sockets = new Set<Socket>()
  const waiting: { fault: Fault; matches: (request: SeenRequest) => boolean }[] = []
  let planned: (request: SeenRequest) => Fault | undefined = () => undefined
  let thawed = Promise.resolve()
  let thaw = () => {}

  const choose = (request: SeenRequest): Fault => {
    const at = waiting.findIndex(({ matches }) => matches(request))
    return waiting.splice(at, at < 0 ? 0 : 1)[0]?.fault ?? planned(request) ?? pass
  }
  const server = http.createServer((incoming, response) => {
    const meet = async () => {
      const exchange = await openExchange(target, incoming, response, () => thawed)
      requests.push(exchange.request)
      await choose(exchange.request)(exchange)
    }
    // For any failure behind the proxy its clients see the same as without it: a broken connection.
    meet().catch(() => response.destroy())
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const port = await listenOnOwnPort(server)
  const url = new URL(upstream)
  url.host = `127.0.0.1:${port}`

  const proxy: FaultyProxy = {
    url: url.href.replace(/\/$/, ''),
    requests,
    get openConnections() {
      return sockets.size
    },
    plan(choose) {
      planned = choose
    },
    next(fault, matches = () => true) {
      waiting.push({ fault, matches })
    },
    freeze(frozen) {
      thaw()
      if (frozen) thawed = new Promise((resolve) => (thaw = resolve))
    },
    dropConnections() {
      for (const socket of sockets) socket.destroy()
    },
    async down() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      proxy.dropConnections()
      await closed
    },
    async up() {
      await once(server.listen(port, '127.0.0.1'), 'listening')
    },
  }
  onTestFinished(() => {
    thaw()
    return proxy.down()
  })
  return proxy
}
