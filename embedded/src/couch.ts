import { randomBytes } from 'node:crypto'
import { startOnFreePort } from './free-port.ts'
import type { Log } from './log.ts'
import { startServer } from './process.ts'

export interface EmbeddedCouchOptions {
  readonly log: Log
  /** Preferred port; if it is taken, the next free one. Default 5984. */
  readonly port?: number
  /** Cancels the start. */
  readonly signal?: AbortSignal
}

export interface EmbeddedCouch {
  /** `http://admin:password@127.0.0.1:port`, with a new random password each time. */
  readonly url: string
  close(): Promise<void>
}

/**
 * Starts a server with CouchDB's API, for experiments and tests. It is pouchdb-server's `express-pouchdb` in its own
 * process, on 127.0.0.1 only, with databases in memory. couchdb-sidecar's `docs/quirks.md` lists its differences from
 * CouchDB. Throws if the server does not start, and the signal's reason.
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
