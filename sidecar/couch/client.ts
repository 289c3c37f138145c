import { Readable } from 'node:stream'
import { Agent } from 'undici'
import { createReadMany } from './read-many.ts'
import type { DateReceiver } from './couch-clock.ts'
import { createDatabase, type Database } from './database.ts'
import { withDeadline } from './deadline.ts'
import { CouchError, isCouchError } from './couch-errors.ts'
import { exchange, exchangeJson, type Answer, type Exchange } from './exchange.ts'
import { segment } from './path.ts'
import { anything, type Schema } from './schemas.ts'
import { createSign, type Sign } from './signature.ts'
import { Semaphore } from '../core/semaphore.ts'

export interface CouchRequest {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'HEAD'
  /** Database or server-level endpoint (`_session`); encoded here. */
  readonly db?: string
  /** Path after the database, already encoded. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: unknown
  /** The body as JSON text, if the caller already has it. */
  readonly json?: string
  /** A body that is not JSON. */
  readonly content?: Content
  readonly signal?: AbortSignal | undefined
  /** How long to wait for the whole answer after the request is sent. Milliseconds, default 60,000. */
  readonly timeoutMs?: number
  /**
   * For short reads: if no answer begins within this time, the request is sent once more. Milliseconds. A cluster loses
   * a request that it forwards to a restarting node. CouchDB gives up after a minute, but answers the next request.
   */
  readonly beginsWithinMs?: number
  /** Sends the request before all waiting ones without `first`: other work relies on its being in time. */
  readonly first?: boolean
  /** The answer waits for an event: the request has a connection of its own, outside the limit. */
  readonly waits?: boolean
  /** Called when the request is sent, possibly long after the call. */
  readonly onSent?: () => void
}

/** Content of an attachment. */
export interface Content {
  /** MIME type. */
  readonly type: string
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>
}

/** A CouchDB server, a cluster, or a compatible server. */
export interface Couch {
  /** Without credentials: safe to print. */
  readonly url: string
  /**
   * Returns the parsed JSON body of a 2xx answer. Throws `CouchError` (`garbled` if the answer does not fit the
   * schema), or the signal's reason when it aborts.
   */
  request<T>(request: CouchRequest, schema: Schema<T>): Promise<T>
  request(request: CouchRequest): Promise<unknown>
  /** Returns a long or endless answer, on its own connection. Throws like `request`, also while its bytes are read. */
  stream(request: CouchRequest & { signal: AbortSignal }): Promise<Answer>
  /** @param first default for each request of the database */
  db(name: string, first?: boolean): Database
  /** Signs with the credentials of this client. */
  readonly sign: Sign
  /** Closes every connection; running requests fail. */
  close(): Promise<void>
}

export interface CouchOptions {
  /** `http://user:password@host:5984`, with a path if CouchDB has one. */
  readonly url: string
  /** Maximum concurrent requests; endless requests have separate connections. Default 32. */
  readonly connections?: number
  /** Connections reserved for requests with `first`. Default 0. */
  readonly kept?: number
  /** Maximum wait for an answer, counted from the call. Milliseconds; default unlimited. */
  readonly patienceMs?: number
  /** Receives CouchDB's time. */
  readonly clock?: DateReceiver
}

/** Maximum size of an answer that is read as a whole, larger than any document. A larger one is cut off: `garbled`. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 60_000

/** Endless requests have a separate pool: each holds its connection, so in one pool they could block all others. */
export function createCouch({ url, connections = 32, kept = 0, patienceMs, clock }: CouchOptions): Couch {
  const address = new URL(url)
  const headers: Record<string, string> = {}
  const user = `${decodeURIComponent(address.username)}:${decodeURIComponent(address.password)}`
  if (address.username) {
    headers.authorization = `Basic ${Buffer.from(user).toString('base64')}`
  }
  address.username = address.password = ''
  const base = address.href.replace(/\/$/, '')
  const root = address.pathname.replace(/\/$/, '')
  const times = { headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 10_000 } // callers set the timeouts
  const agent = new Agent({ connections, pipelining: 1, ...times, maxResponseSize: MAX_ANSWER_BYTES })
  const endless = new Agent({ pipelining: 1, ...times })
  const withConnection = createConnectionLimit(connections, kept) // waiting requests can be overtaken, and their timeouts do not run

  /** Builds the exchange, except its signal. */
  function prepare({ method = 'GET', db, path, query, body, json, content }: CouchRequest, dispatcher: Agent) {
    const target = `${root}/${[db === undefined ? undefined : segment(db), path].filter(Boolean).join('/')}`
    const search = query && new URLSearchParams(Object.entries(query).map(asText)).toString()
    return {
      name: nameOf(method, db, path),
      ...{ method, dispatcher, clock, origin: address.origin, path: search ? `${target}?${search}` : target },
      headers: content ? { ...headers, 'content-type': content.type } : headers,
      body: content ? bodyOf(content) : (json ?? (body === undefined ? undefined : JSON.stringify(body))),
    }
  }

  const couch: Couch = {
    url: base,
    async request<T>(request: CouchRequest, schema: Schema<T> = anything as Schema<T>) {
      const { signal, timeoutMs = REQUEST_TIMEOUT_MS, beginsWithinMs, first, waits, onSent } = request
      const prepared = prepare(request, waits ? endless : agent)
      const turn = (signal?: AbortSignal) => {
        const begin = () => {
          onSent?.()
          return withDeadline(prepared.name, timeoutMs, signal, (deadline) =>
            exchangeWithin(prepared, beginsWithinMs, deadline),
          )
        }
        return waits ? begin() : withConnection(begin, first, signal)
      }
      const answer = await (patienceMs ? withDeadline(prepared.name, patienceMs, signal, turn) : turn(signal))
      return fitting(schema, answer, prepared.name)
    },

    async stream({ signal, ...request }) {
      try {
        const { headers, bytes } = await exchange({ ...prepare(request, endless), signal })
        return { headers, bytes: whileWanted(bytes, signal) }
      } catch (thrown) {
        signal.throwIfAborted()
        throw thrown
      }
    },

    db: (name, first) => createDatabase(couch, name, readMany, first),
    sign: createSign(user),
    close: async () => void (await Promise.all([agent.destroy(), endless.destroy()])),
  }
  const readMany = createReadMany(couch)
  return couch
}

async function exchangeWithin(
  exchange: Omit<Exchange, 'signal'>,
  beginsWithinMs: number | undefined,
  signal: AbortSignal,
) {
  if (beginsWithinMs === undefined) return exchangeJson({ ...exchange, signal })
  try {
    return await withDeadline(exchange.name, beginsWithinMs, signal, (soon, inTime) =>
      exchangeJson({ ...exchange, signal: soon, onBegun: inTime }),
    )
  } catch (thrown) {
    signal.throwIfAborted()
    if (!isCouchError(thrown, 'timeout')) throw thrown
    return exchangeJson({ ...exchange, signal })
  }
}

/** Maximum characters of an answer in an error message. */
const MOST_SHOWN = 80

/** The answer, or the part of it that the schema knows. */
function fitting<T>(schema: Schema<T>, answer: object, request: string): T {
  const { success, data, error } = schema.safeParse(answer, { reportInput: true })
  if (success) return data
  const { path, message, input } = error.issues[0]!
  const expected = message.replace(/^Invalid input: |, received .*$/g, '')
  const got = (JSON.stringify(input) ?? 'nothing').slice(0, MOST_SHOWN)
  const where = path.length > 0 ? ` at ${path.map(String).join('.')}` : ''
  throw new CouchError('garbled', { request, reason: `${expected}${where}, got ${got}; is CouchDB at this address?` })
}

const bodyOf = ({ bytes }: Content) =>
  bytes instanceof Uint8Array ? bytes : Readable.from(bytes, { objectMode: false })

const nameOf = (method: string, db?: string, path?: string) => `${method} /${[db, path].filter(Boolean).join('/')}`

/** Query parameters that CouchDB parses as JSON. */
const JSON_PARAMETERS: readonly string[] = ['key', 'keys', 'startkey', 'endkey']
const asText = ([name, value]: [string, string | number | boolean]): [string, string] => [
  name,
  JSON_PARAMETERS.includes(name) ? JSON.stringify(value) : String(value),
]

/** Passes bytes on. After an abort it throws the signal's reason instead of the resulting error. */
async function* whileWanted(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  try {
    yield* bytes
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown
  }
}

/** Runs the work when a connection is free. Work with `first` runs before all waiting work without it. */
type WithConnection = <T>(work: () => Promise<T>, first?: boolean, signal?: AbortSignal) => Promise<T>

/** @param reserved connections of `count` that only work with `first` may take: slow answers never delay it */
function createConnectionLimit(count: number, reserved: number): WithConnection {
  const all = new Semaphore(() => count)
  const unreserved = new Semaphore(() => Math.max(1, count - reserved))
  return (work, first, signal) => {
    const run = () => all.run(work, first, signal)
    return first ? run() : unreserved.run(run, false, signal)
  }
}
