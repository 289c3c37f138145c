/**
 * The inbox over HTTP: a database to which any client may write. A client can read only the status of its own
 * documents. Answers and statuses are CouchDB's, if CouchDB has them.
 *
 * The inbox is open to pages of every origin, also with the credentials that PouchDB makes browsers send: it ignores
 * them. A secret comes in a header that no browser adds by itself.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { Hono, type Context } from 'hono'
import { cors } from 'hono/cors'
import type { Hashing } from '../devices/passwords.ts'
import type { InboxCounts } from './inbox-metrics.ts'
import type { Inbox } from './inbox.ts'
import { clientAddress } from '../http/client-address.ts'
import { HttpError } from '../http/http-errors.ts'
import { docsFrom, full, inboxDatabase, MAX_DOCS, notReady, rootOf, rowOf, withId, type Row } from './inbox-database.ts'
import { readObject, type JsonObject } from '../http/json-body.ts'
import { type RateLimiter, createRateLimiter } from '../http/token-bucket.ts'
import type { Clock } from '../core/clock.ts'

export interface InboxRouteOptions extends InboxRatesOptions {
  readonly inbox: Inbox
  /** Hash parameters for devices that make their own credentials. */
  readonly hashing: Hashing
  /** Number of proxies in front of the sidecar. */
  readonly proxies: number
  /** Counters that the route increments. */
  readonly counts: InboxCounts
}

/**
 * Serves `/inbox`: `POST` and `PUT` of a document, `_bulk_docs`, and the other requests of a replication. `GET` of a
 * document needs its secret in `Authorization: Bearer`.
 *
 * @example
 * createHttp({ routes: [inboxRoute({ inbox, perMinute: 30, limit: 10_000, proxies: 0, hashing, clock, counts })], log })
 */
export function inboxRoute({ inbox, hashing, perMinute, limit, proxies, clock, counts }: InboxRouteOptions): Hono {
  const { writes, reads, shares } = createInboxRates({ perMinute, limit, clock })
  const key = randomBytes(16)
  /** A keyed hash: readers of the documents cannot learn the addresses, not even by trying all of them. */
  const nameOf = (address: string) => createHmac('sha256', key).update(address).digest('hex').slice(0, 16)

  function pay(c: Context, limiter: RateLimiter, count: number): void {
    const waitMs = limiter.take(clientAddress(c, proxies), count)
    if (waitMs === 0) return
    counts.turnedAway.rate += 1
    const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) }
    throw new HttpError(429, 'too_many_requests', 'Too many requests from this address. Try again later.', { headers })
  }

  /** Receives documents one by one. Throws `HttpError` if one of them found no room: the client sends all again. */
  async function receive(c: Context, docs: readonly JsonObject[], replicated: boolean): Promise<Row[]> {
    pay(c, writes, docs.length)
    const address = clientAddress(c, proxies)
    const hasShare = () => shares.take(address) === 0
    const rows: (Row | undefined)[] = []
    for (const doc of docs) {
      rows.push(rowOf(doc._id, await inbox.receive({ doc, replicated, by: nameOf(address) }, hasShare).catch(notReady)))
    }
    if (!rows.every((row) => row !== undefined)) throw full()
    return rows
  }

  async function insert(c: Context, doc: JsonObject) {
    const [row] = await receive(c, [doc], c.req.query('new_edits') === 'false')
    if ('error' in row!) throw new HttpError(row.error === 'conflict' ? 409 : 403, row.error, row.reason)
    return c.json(row, 201)
  }

  const app = new Hono()
  app.use(`${PATH}/*`, cors(CORS))
  app.on('POST', rootOf(PATH), async (c) => insert(c, withId(await readObject(c))))
  app.post(`${PATH}/_bulk_docs`, async (c) => {
    const { docs, replicated } = docsFrom(await readObject(c))
    const rows = await receive(c, docs.map(withId), replicated)
    return c.json(replicated ? rows.filter((row) => 'error' in row) : rows, 201)
  })
  app.route('/', inboxDatabase(PATH, hashing))
  app.put(DOCUMENT, async (c) => {
    const [_id, doc] = [c.req.param('id'), await readObject(c)]
    if (doc._id !== undefined && doc._id !== _id) {
      throw new HttpError(400, 'bad_request', 'Document ID must match the id in the path, or be left out.')
    }
    return insert(c, { ...doc, _id })
  })
  app.get(DOCUMENT, async (c) => {
    pay(c, reads, 1)
    const secret = /^Bearer +([\x21-\x7e]+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
    const status = secret && (await inbox.status(c.req.param('id'), secret, { signal: c.req.raw.signal }))
    if (!status) throw new HttpError(404, 'not_found', 'missing')
    return c.json(status)
  })
  app.all(`${PATH}/*`, () => {
    throw new HttpError(403, 'forbidden', 'The inbox only accepts documents.')
  })
  return app
}

const PATH = '/inbox'
/** Path of a document. Ids that begin with `_` are no documents. */
const DOCUMENT = `${PATH}/:id{[^_/][^/]*}` as const

/** Repeats the origin instead of `*`: browsers accept `*` only for requests without credentials. */
const CORS = {
  origin: (origin: string) => origin || null,
  credentials: true,
  allowMethods: ['GET', 'HEAD', 'POST', 'PUT'],
  allowHeaders: ['Accept', 'Authorization', 'Content-Type'],
  exposeHeaders: ['Retry-After'],
  maxAge: 600,
}

interface InboxRatesOptions {
  /** Maximum number of documents from one address within a minute. */
  readonly perMinute: number
  /** Maximum number of devices that wait for confirmation. */
  readonly limit: number
  readonly clock: Clock
}

interface InboxRates {
  /** For sent documents. */
  readonly writes: RateLimiter
  /** For requests of a status. */
  readonly reads: RateLimiter
  /** For new documents once half of the room is taken: otherwise one address could take all of it. */
  readonly shares: RateLimiter
}

/** Rate of status requests, as a multiple of the rate of documents. */
const FATES = 10
/** Minimum of status requests a minute: a waiting client asks every two seconds, and two may share an address. */
const POLLING = 60
/** Share of the room for one address within a day. After a day its earlier devices no longer wait. */
const SHARE = 1 / 20
const DAY_MINUTES = 24 * 60

function createInboxRates({ perMinute, limit, clock }: InboxRatesOptions): InboxRates {
  const share = Math.max(limit * SHARE, 1)
  return {
    writes: createRateLimiter({ perMinute, atOnce: MAX_DOCS, clock }),
    reads: createRateLimiter({ perMinute: Math.max(perMinute * FATES, POLLING), clock }),
    shares: createRateLimiter({ perMinute: share / DAY_MINUTES, atOnce: share, clients: limit, clock }),
  }
}
