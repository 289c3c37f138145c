import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { couchUrl } from './couchdb.ts'
import { pass, type Fault } from './faults.ts'
import { openExchange, type SeenRequest } from '../../sidecar/testing/proxy-exchange.ts'

export * from './faults.ts'
export type { SeenRequest } from '../../sidecar/testing/proxy-exchange.ts'

export interface FaultyProxy {
  /** The server's URL, credentials and all, by way of the proxy. */
  readonly url: string
  /** Every request so far, in the order of arrival, whatever became of it. */
  readonly requests: readonly SeenRequest[]
  /** Connections that clients have open now, used or idle. */
  readonly openConnections: number
  /** Decides about every request from now on; `undefined` passes it. Takes the place of the plan before. */
  plan(choose: (request: SeenRequest) => Fault | undefined): void
  /** For one request, the next that `matches`; before any plan. Several wait in line. */
  next(fault: Fault, matches?: (request: SeenRequest) => boolean): void
  /** Forwards nothing more, in answers under way too, with every connection left open; `false` goes on. */
  freeze(frozen: boolean): void
  /** Breaks every connection; new ones are welcome. */
  dropConnections(): void
  /** Breaks every connection and refuses new ones. */
  down(): Promise<void>
  /** Comes back after `down`, on the same port. */
  up(): Promise<void>
}

/**
 * A proxy in front of the real server that passes everything on until told otherwise. It belongs to the running test.
 *
 * @example
 * const proxy = await startFaultyProxy()
 * const couch = createTestCouch({ url: proxy.url })
 * proxy.plan((request) => (request.path.endsWith('_bulk_docs') ? cutAfterUpstream : undefined))
 * proxy.next(refuse(503))
 */
export async function startFaultyProxy(upstream: string = couchUrl()): Promise<FaultyProxy> {
  const target = new URL(new URL(upstream).origin) // without the credentials: those are each client's own
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
    // Whatever breaks behind the proxy, its clients see what they would without it: a broken connection.
    meet().catch(() => response.destroy())
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
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
