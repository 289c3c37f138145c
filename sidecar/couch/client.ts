import nano from 'nano'
import { Agent } from 'undici'
import { CouchError, codeOf } from './errors.ts'
import { createReadMany } from './read-many.ts'
import { createDatabase, type Database } from './database.ts'
import { withDeadline } from './deadline.ts'
import { createPlaces } from './places.ts'
import { createSign, type Sign } from './signature.ts'

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
  readonly signal?: AbortSignal | undefined
  /** How long to wait for the whole answer, once it is sent. Milliseconds, default 60,000. */
  readonly timeoutMs?: number
  /** To be sent before all that wait without it: others rely on its being done in time. */
  readonly first?: boolean
  /** It is answered when something happens: it takes nobody's place, and has a connection of its own. */
  readonly waits?: boolean
  /** Called when it is sent, which may be long after it was asked for. */
  readonly onSent?: () => void
}

/** A CouchDB server (or cluster, or whatever speaks like one). */
export interface Couch {
  /** Without credentials: safe to print. */
  readonly url: string
  /** The parsed JSON body of a 2xx answer. Throws `CouchError`, or the signal's reason when it aborts. */
  request<T>(request: CouchRequest): Promise<T>
  /** The bytes of an endless answer, as they come. Throws like `request`, also while reading. */
  stream(request: CouchRequest & { signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>>
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
  /** The longest that anybody waits for an answer, also while it is not sent yet. Milliseconds; default without end. */
  readonly patienceMs?: number
}

/** The longest answer that is read as a whole, larger than any document. A longer one is cut off: `garbled`. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 60_000

/**
 * nano for every request with an end; the platform's fetch for the endless ones, because nano's streams lose the
 * reason of a refusal and do not pass on a connection that breaks. Each has its own pool: an endless request keeps its
 * connection, and as many of them as there are connections would leave none for any other.
 */
export function createCouch({ url, connections = 32, kept = 0, patienceMs }: CouchOptions): Couch {
  const address = new URL(url)
  const headers: Record<string, string> = {}
  const user = `${decodeURIComponent(address.username)}:${decodeURIComponent(address.password)}`
  if (address.username) {
    headers.authorization = `Basic ${Buffer.from(user).toString('base64')}`
  }
  address.username = address.password = ''
  const base = address.href.replace(/\/$/, '')
  const agent = new Agent({ connections, pipelining: 1, keepAliveTimeout: 10_000, maxResponseSize: MAX_ANSWER_BYTES })
  const endless = new Agent({ pipelining: 1, keepAliveTimeout: 10_000 })
  // nano takes a dispatcher as `agentOptions` and `parseUrl: false` to leave the path alone, whatever its types say.
  const through = (agentOptions: Agent) =>
    nano({ url: base, parseUrl: false, agentOptions, headers } as unknown as nano.Configuration)
  const [server, waiting] = [through(agent), through(endless)]
  const inPlace = createPlaces(connections, kept) // one waits here, where it can be overtaken, and its time does not run

  const couch: Couch = {
    url: base,
    async request<T>(request: CouchRequest) {
      const { method = 'GET', db, path, query, body, signal, timeoutMs = REQUEST_TIMEOUT_MS } = request
      const { first, waits, onSent } = request
      const json = request.json ?? (body === undefined ? undefined : JSON.stringify(body))
      const name = nameOf(method, db, path)
      const send = (deadline: AbortSignal) =>
        (waits ? waiting : server)
          .request({
            method,
            ...(db === undefined ? {} : { db }),
            ...(path === undefined ? {} : { path }),
            ...(query === undefined ? {} : { qs: query }),
            ...(json === undefined ? {} : { body: json, dontStringify: true }),
            signal: deadline,
          } as nano.RequestOptions)
          .catch((thrown: unknown) => {
            throw couchErrorFrom(name, thrown)
          })
      const turn = (signal?: AbortSignal) => {
        const begin = () => {
          onSent?.()
          return withDeadline(name, timeoutMs, signal, send)
        }
        return waits ? begin() : inPlace(begin, first, signal)
      }
      const answer: unknown = await (patienceMs ? withDeadline(name, patienceMs, signal, turn) : turn(signal))
      // nano gives a string or bytes for a body that is not the JSON it announced: cut short, or a proxy's page.
      if (typeof answer !== 'object' || answer === null || Buffer.isBuffer(answer)) {
        throw new CouchError('garbled', { request: name, reason: 'the answer is not whole JSON' })
      }
      return answer as T
    },

    async stream({ method = 'GET', db, path, query, body, signal }) {
      const name = nameOf(method, db, path)
      const target = [base, db === undefined ? undefined : encodeURIComponent(db), path].filter(Boolean).join('/')
      const search = new URLSearchParams(query as Record<string, string> | undefined)
      try {
        const response = await fetch(`${target}?${search.toString()}`, {
          method,
          headers: { ...headers, accept: 'application/json', 'content-type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal,
          dispatcher: endless,
        } as unknown as RequestInit)
        if (!response.ok || !response.body) throw await refusal(name, response)
        return readable(name, response.body, signal)
      } catch (thrown) {
        signal.throwIfAborted()
        throw thrown instanceof CouchError ? thrown : couchErrorFrom(name, thrown)
      }
    },

    db: (name, first) => createDatabase(couch, name, readMany, first),
    sign: createSign(user),
    close: async () => void (await Promise.all([agent.destroy(), endless.destroy()])),
  }
  const readMany = createReadMany(couch)
  return couch
}

const nameOf = (method: string, db?: string, path?: string) => `${method} /${[db, path].filter(Boolean).join('/')}`

async function* readable(request: string, body: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  try {
    yield* body
  } catch (thrown) {
    signal.throwIfAborted()
    throw couchErrorFrom(request, thrown)
  }
}

async function refusal(request: string, response: Response): Promise<CouchError> {
  const said = (await response.json().catch(() => ({}))) as { error?: string; reason?: string }
  return new CouchError(codeOf(response.status, said.error), { request, status: response.status, ...said })
}

/** nano's errors carry `statusCode`, `error`, `reason`; the network's have only a message and a cause. */
function couchErrorFrom(request: string, thrown: unknown): CouchError {
  const { statusCode, error, reason, message, cause } = thrown as {
    statusCode?: number
    error?: string
    reason?: string
    message?: string
    cause?: unknown
  }
  if (statusCode !== undefined) {
    const details = { request, status: statusCode, ...(error ? { error } : {}), ...(reason ? { reason } : {}) }
    return new CouchError(codeOf(statusCode, error), details)
  }
  const why = cause instanceof Error ? cause.message : (message ?? String(thrown))
  return new CouchError('unreachable', { request, reason: why }, { cause: thrown })
}
