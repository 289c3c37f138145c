import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { Hono } from 'hono'
import { ConfigError } from '../core/errors.ts'

export interface ListenOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** How long a client may take to send the headers, milliseconds. Default 10 s. */
  readonly headersMs?: number
  /** How long a client may take to send the whole request, milliseconds. Default 30 s. */
  readonly requestMs?: number
}

export interface Listening {
  /** The port that was bound. */
  readonly port: number
  /** URL for a browser on this machine, without a trailing slash. */
  readonly url: string
  /** Sets the application that answers. Earlier requests wait for it. Call once. */
  serve(app: Hono): void
  /** Stops accepting requests. Idle connections close at once, busy ones after their answer or after a second. */
  close(): Promise<void>
}

const CUT_MS = 1_000

/**
 * Binds a port.
 *
 * @throws ConfigError that names the setting to change, if the port is not available
 */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { host, port, headersMs = 10_000, requestMs = 30_000 } = options
  let serve!: (app: Hono) => void
  const served = new Promise<Hono>((resolve) => (serve = resolve))
  const server = createAdaptorServer({
    fetch: async (request, env) => (isMalformed(env.incoming) ? refuse() : (await served).fetch(request, env)),
    serverOptions: {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(headersMs, 5_000),
    },
  }) as Server
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (thrown) {
    throw faultFrom(thrown as NodeJS.ErrnoException, host, port)
  }
  let closing: Promise<void> | undefined
  const close = () => (closing ??= closeServer(server))
  const bound = (server.address() as AddressInfo).port
  return { port: bound, url: `http://${nameOf(host)}:${bound}`, serve, close }
}

/** Finds a header without a name: the parser of Node before 20.20 accepts it. */
const isMalformed = ({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean =>
  rawHeaders.some((name, at) => at % 2 === 0 && name === '')

/** The answer that Node gives to requests that its parser refuses. */
const refuse = () => new Response(null, { status: 400, headers: { Connection: 'close' } })

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const cut = setTimeout(() => server.closeAllConnections(), CUT_MS)
  await closed
  clearTimeout(cut)
}

function faultFrom(thrown: NodeJS.ErrnoException, host: string, port: number): Error {
  const faults: Readonly<Record<string, string>> = {
    EADDRINUSE: `SIDECAR_PORT: expected a free port, got ${port}, which is in use on ${host}`,
    EACCES: `SIDECAR_PORT: expected a port that this user may listen on, got ${port}`,
    EADDRNOTAVAIL: `SIDECAR_HOST: expected an address of this machine, got "${host}"`,
    ENOTFOUND: `SIDECAR_HOST: expected an address of this machine, got "${host}", which is not known`,
  }
  const fault = faults[thrown.code ?? '']
  return fault ? new ConfigError([fault]) : thrown
}

function nameOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
