import pino from 'pino'
import { startCouch } from '../../embedded/src/couch.ts'
import build from '../acceptance/build.ts'
import { findCouchBinary, startCouchBinary } from './couchdb-binary.ts'
import { startCouchContainer } from './couchdb-container.ts'

export type ServerKind = 'url' | 'binary' | 'container' | 'embedded'

/** The server that the tests run against. */
export interface TestServer {
  readonly kind: ServerKind
  /** The URL with the admin's credentials. */
  readonly url: string
  readonly version: string
}

interface Started {
  readonly url: string
  stop(): Promise<void>
}

/** The sources of a server, in the order of attempts. Each gives `undefined` if it has no server. */
const sources: Readonly<Record<ServerKind, () => Promise<Started | undefined>>> = {
  url: () => {
    const url = process.env.COUCHDB_URL
    return Promise.resolve(url ? { url, stop: () => Promise.resolve() } : undefined)
  },
  binary: async () => {
    const binary = findCouchBinary()
    if (binary === undefined) return undefined
    const couch = await startCouchBinary(binary)
    // Without this database every sidecar follows every database of all tests.
    await fetch(`${new URL(couch.url).origin}/_global_changes`, { method: 'PUT', headers: asAdmin(couch.url) })
    return couch
  },
  container: startCouchContainer,
  embedded: async () => {
    await build()
    const couch = await startCouch({ log: pino({ level: 'silent' }), port: 15984 })
    return { url: couch.url, stop: () => couch.close() }
  },
}

/**
 * Finds the first available server: the one at `COUCHDB_URL`, one started from the binary at `COUCHDB_BIN`, one in a
 * container, the embedded one. A server that does not start is reported and skipped. `TEST_COUCHDB` names one of these
 * kinds; then only that kind is tried, and its absence is an error.
 */
export async function findServer(): Promise<TestServer & Started> {
  const wanted = process.env.TEST_COUCHDB
  const failures: unknown[] = []
  for (const [kind, start] of Object.entries(sources) as [ServerKind, () => Promise<Started | undefined>][]) {
    if (wanted && wanted !== kind) continue
    const started = await start().catch((failure: unknown) => {
      console.warn(`The ${kind} server does not start`, failure)
      failures.push(failure)
    })
    if (started) return { kind, url: started.url, version: await versionOf(started.url), stop: () => started.stop() }
  }
  const kinds = Object.keys(sources).join(', ')
  throw new AggregateError(failures, `no CouchDB for the tests; TEST_COUCHDB=${wanted ?? ''}, kinds are ${kinds}`)
}

async function versionOf(url: string): Promise<string> {
  const { origin } = new URL(url)
  const welcome = (await (await fetch(origin)).json()) as { couchdb?: string; version: string }
  return `${welcome.couchdb ? 'CouchDB' : 'pouchdb-server'} ${welcome.version}`
}

function asAdmin(url: string): { authorization: string } {
  const { username, password } = new URL(url)
  return { authorization: `Basic ${btoa(`${username}:${password}`)}` }
}
