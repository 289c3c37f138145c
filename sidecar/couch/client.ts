import { Readable } from 'node:stream'
import { Agent } from 'undici'
import { createReadMany } from './read-many.ts'
import type { HearsDates } from './couch-clock.ts'
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
  /** What follows the database, already encoded. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: unknown
  /** The body as JSON text, where the caller has it already. */
  readonly json?: string
  /** A body that is no JSON. */
  readonly content?: Content
  readonly signal?: AbortSignal | undefined
  /** How long to wait for the whole answer, once it is sent. Milliseconds, default 60,000. */
  readonly timeoutMs?: number
  /**
   * What is only read, and soon, is asked once more where no answer has begun after so long. Milliseconds. What a cluster
   * has passed on to a node that was starting again is lost: CouchDB gives it up after a minute, the next request is answered.
   */
  readonly beginsWithinMs?: number
  /** To be sent before all that wait without it: others rely on its being done in time. */
  readonly first?: boolean
  /** It is answered when something happens: it has a connection of its own, beside the limit. */
  readonly waits?: boolean
  /** Called when it is sent, which may be long after it was asked for. */
  readonly onSent?: () => void
}

/** What an attachment holds. */
export interface Content {
  /** MIME. */
  readonly type: string
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>
}

/** A CouchDB server (or cluster, or whatever speaks like one). */
export interface Couch {
  /** Without credentials: safe to print. */
  readonly url: string
  /**
   * The parsed JSON body of a 2xx answer. Throws `CouchError`, `garbled` for an answer that does not fit the schema, or
   * the signal's reason when it aborts.
   */
  request<T>(request: CouchRequest, schema: Schema<T>): Promise<T>
  request(request: CouchRequest): Promise<unknown>
  /** An answer that is long or endless, on a connection of its own. Throws like `request`, also while its bytes are read. */
  stream(request: CouchRequest & { signal: AbortSignal }): Promise<Answer>
  /** @param first for each of its requests */
  db(name: string, first?: boolean): Database
  /** By the credentials with which this client logs in. */
  readonly sign: Sign
  /** Closes every connection; requests under way fail. */
  close(): Promise<void>
}

export interface CouchOptions {
  /** `http://user:password@host:5984`, with a path if CouchDB lives below one. */
  readonly url: string
  /** The most requests at once; endless ones have connections of their own beside them. Default 32. */
  readonly connections?: number
  /** So many of them are left to those that go `first`. Default 0. */
  readonly kept?: number
  /** The longest wait for an answer, from the call on. Milliseconds; default without end. */
  readonly patienceMs?: number
  /** Told of the time that CouchDB has. */
  readonly clock?: HearsDates
}

/** The longest answer that is read as a whole, larger than any document. A longer one is cut off: `garbled`. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 60_000

/**
 * Endless requests have a pool of their own: each keeps its connection, and as many of them as there are connections
 * would leave none for any other.
 */
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
  const times = { headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 10_000 } // how long to wait is the caller's
  const agent = new Agent({ connections, pipelining: 1, ...times, maxResponseSize: MAX_ANSWER_BYTES })
  const endless = new Agent({ pipelining: 1, ...times })
  const withConnection = createConnectionLimit(connections, kept) // one waits here, where it can be overtaken, and its time does not run

  /** What is to be sent, but for how long it may take. */
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
      const asked = prepare(request, waits ? endless : agent)
      const turn = (signal?: AbortSignal) => {
        const begin = () => {
          onSent?.()
          return withDeadline(asked.name, timeoutMs, signal, (deadline) => ask(asked, beginsWithinMs, deadline))
        }
        return waits ? begin() : withConnection(begin, first, signal)
      }
      const answer = await (patienceMs ? withDeadline(asked.name, patienceMs, signal, turn) : turn(signal))
      return fitting(schema, answer, asked.name)
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

async function ask(asked: Omit<Exchange, 'signal'>, beginsWithinMs: number | undefined, signal: AbortSignal) {
  if (beginsWithinMs === undefined) return exchangeJson({ ...asked, signal })
  try {
    return await withDeadline(asked.name, beginsWithinMs, signal, (soon, inTime) =>
      exchangeJson({ ...asked, signal: soon, onBegun: inTime }),
    )
  } catch (thrown) {
    signal.throwIfAborted()
    if (!isCouchError(thrown, 'timeout')) throw thrown
    return exchangeJson({ ...asked, signal })
  }
}

/** Of an answer, in messages. */
const MOST_SHOWN = 80

/** The answer, or what of it the schema knows. */
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

/** What CouchDB reads as JSON in the parameters of a request. */
const JSON_PARAMETERS: readonly string[] = ['key', 'keys', 'startkey', 'endkey']
const asText = ([name, value]: [string, string | number | boolean]): [string, string] => [
  name,
  JSON_PARAMETERS.includes(name) ? JSON.stringify(value) : String(value),
]

/** The signal's own reason when it has aborted, whatever came of that on the way. */
async function* whileWanted(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  try {
    yield* bytes
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown
  }
}

/** Runs the work when a connection is free; `first` before all work that waits without it. */
type WithConnection = <T>(work: () => Promise<T>, first?: boolean, signal?: AbortSignal) => Promise<T>

/** @param reserved how many of `count` only work with `first` may take, so that slow answers never keep it waiting */
function createConnectionLimit(count: number, reserved: number): WithConnection {
  const all = new Semaphore(() => count)
  const unreserved = new Semaphore(() => Math.max(1, count - reserved))
  return (work, first, signal) => {
    const run = () => all.run(work, first, signal)
    return first ? run() : unreserved.run(run, false, signal)
  }
}
