import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { startOnFreePort } from './free-port.ts'
import { startPouchdbServer } from './pouchdb-server.ts'

export interface EmbeddedCouchOptions {
  readonly log: Logger
  /** Tried first, then the next free one. Default 5984. */
  readonly port?: number
  /** Gives up starting. */
  readonly signal?: AbortSignal
}

export interface EmbeddedCouch {
  /** `http://admin:password@127.0.0.1:port`; the password is another one each time. */
  readonly url: string
  close(): Promise<void>
}

/**
 * The CouchDB for somebody who has none: pouchdb-server in a process of its own, on 127.0.0.1 only, with its databases
 * in memory. For trying things out and for tests; `docs/quirks.md` says where it differs from CouchDB. Throws `ConfigError` where it is not
 * installed, `SidecarError` where it does not start.
 *
 * @example
 * const couch = await startEmbeddedCouch({ log })
 * console.log(couch.url) // http://admin:…@127.0.0.1:5984
 * await couch.close()
 */
export function startEmbeddedCouch(options: EmbeddedCouchOptions): Promise<EmbeddedCouch> {
  const { log, signal, port: preferred = 5984 } = options
  const password = randomBytes(16).toString('hex')
  return startOnFreePort(preferred, async (port) => {
    const server = await startPouchdbServer({ port, password, log, signal })
    return { url: `http://admin:${password}@127.0.0.1:${port}`, close: () => server.stop() }
  })
}
