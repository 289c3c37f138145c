import { pino } from 'pino'
import { expect, onTestFinished } from 'vitest'
import type { Hono } from 'hono'
import { systemClock, type Clock } from '../../../sidecar/core/clock.ts'
import type { WhoIs } from '../../../sidecar/couch/session.ts'
import { createEvents } from '../../../sidecar/events/channels.ts'
import { createDbUpdates } from '../../../sidecar/global-changes/reading/db-updates.ts'
import { createHttp } from '../../../sidecar/http/app.ts'
import { dbUpdatesRoute } from '../../../sidecar/global-changes/serving/db-updates-route.ts'
import { serveApp } from '../../http/serve-app.ts'
import { createRecheck } from '../../../sidecar/http/recheck.ts'
import { freshEventDatabase } from '../reading/event-database.ts'
import { couchUrl, createTestCouch, deleteDb, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { createTestAuthenticate } from '../../http/test-authenticate.ts'

const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })

export const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`

const { username, password } = new URL(couchUrl())
export const admin = { authorization: basic(decodeURIComponent(username), decodeURIComponent(password)) }

interface StartOptions {
  readonly url?: string
  /** The clock of the answers, not of the feed that they read. */
  readonly clock?: Clock
  readonly whoIs?: WhoIs
  readonly routes?: readonly Hono[]
  /** The database does not exist. */
  readonly missing?: boolean
  /** The event documents before the feed starts. */
  readonly existing?: readonly string[]
}

/** The `_db_updates` of a sidecar, over a database of its own. */
export async function start(options: StartOptions = {}) {
  const { url = couchUrl(), clock = systemClock, routes = [], existing = [] } = options
  const db = await freshEventDatabase()
  if (existing.length > 0) await db.report(...existing)
  if (options.missing) await deleteDb(db.name)
  const events = createEvents({ log })
  const stopping = new AbortController()
  const { signal } = stopping
  const couch = createTestCouch({ url })
  const feed = createDbUpdates({ couch, name: db.name, events, clock: systemClock, random: Math.random, log })
  const authenticate = createTestAuthenticate({ url, clock, ...(options.whoIs && { whoIs: options.whoIs }) })
  const route = dbUpdatesRoute({
    feed,
    authenticate,
    recheck: createRecheck({ clock: systemClock, everyMs: 100 }),
    clock,
    signal,
    log,
  })
  const app = createHttp({ routes: [route, ...routes], log })
  const http = await serveApp(app)
  const running = feed.run(signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  onTestFinished(stop)
  const get = (query = '', headers: Record<string, string> = admin, method = 'GET') =>
    fetch(`${http.url}/_db_updates${query}`, { headers, method })
  return { db, feed, events, url: `${http.url}/_db_updates`, port: http.port, get, stop }
}

const isLive = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && query.get('feed') === 'continuous'

/** As `start`, with the database followed already: later rows arrive over its feed. */
export async function startFollowing(options: Omit<StartOptions, 'url'> = {}) {
  const proxy = await startFaultyProxy()
  const started = await start({ ...options, url: proxy.url })
  await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  return started
}

export interface Row {
  readonly db_name: string
  readonly type: string
  readonly seq: string
  readonly account?: string
}

/** The body of a feed that ends. */
export interface Listed {
  readonly results: Row[]
  readonly last_seq: string
}

/** A reader of an endless feed, with the text received so far. */
export interface Reader {
  readonly response: Response
  readonly text: string
  readonly ended: boolean
  /** The rows of all complete lines. */
  rows(): Row[]
  leave(): void
}

export async function openFeed(url: string, headers: Record<string, string> = admin): Promise<Reader> {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(url, { headers, signal: leaving.signal })
  const reader = { response, text: '', ended: false, rows: () => rowsIn(reader.text), leave: () => leaving.abort() }
  void (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body as AsyncIterable<Uint8Array>)
      reader.text += decoder.decode(chunk, { stream: true })
    reader.ended = true
  })().catch(() => undefined)
  return reader
}

/** The rows of any feed: each row is one line. */
export const rowsIn = (text: string): Row[] =>
  text.split('\n').flatMap((line) => {
    const [, json] = /^(?:data: )?(\{"db_name"[^]*\})(?:,\r)?$/.exec(line) ?? []
    return json === undefined ? [] : [JSON.parse(json) as Row]
  })

export const idsOf = (rows: readonly Row[]): string[] => rows.map(({ type, db_name }) => `${type}:${db_name}`).sort()

/** The authorization header of a CouchDB user, who is deleted at the end of the test. */
export async function createUser(name = uniqueName('user')): Promise<{ authorization: string }> {
  const users = createTestCouch().db('_users')
  await users.create()
  const _id = `org.couchdb.user:${name}`
  const rev = await users.put({ _id, name, password: 'pw', type: 'user', roles: ['editor'] })
  onTestFinished(() => users.remove(_id, rev))
  return { authorization: basic(name, 'pw') }
}
