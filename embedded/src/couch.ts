import { randomBytes } from 'node:crypto'
import { startOnFreePort } from './free-port.ts'
import type { Log } from './log.ts'
import { startServer } from './process.ts'

export interface EmbeddedCouchOptions {
  readonly log: Log
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
 * A server that speaks like CouchDB: pouchdb-server's `express-pouchdb` in a process of its own, on 127.0.0.1 only, with its
 * databases in memory. For trying things out and for tests; couchdb-sidecar's `docs/quirks.md` says where it differs from
 * CouchDB. Throws where it does not start, and the signal's reason.
 *
 * @example
 * const couch = await startCouch({ log: console })
 * console.log(couch.url) // http://admin:…@127.0.0.1:5984
 * await couch.close()
 */
export function startCouch(options: EmbeddedCouchOptions): Promise<EmbeddedCouch> {
  const { log, signal, port: preferred = 5984 } = options
  const password = randomBytes(16).toString('hex')
  return startOnFreePort(preferred, async (port) => {
    const server = await startServer({ port, password, log, signal })
    return { url: `http://admin:${password}@127.0.0.1:${port}`, close: () => server.stop() }
  })
}
