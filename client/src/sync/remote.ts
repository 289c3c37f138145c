import { statusOf, type Db, type Pouch } from '../pouch.ts'
import type { Failure } from '../client-status.ts'
import { sendInParts } from './parts.ts'
import { fetchWithLimits, type OpenRequest } from './request.ts'

/** Address and credentials of a remote database. */
export interface Target {
  readonly url: string
  readonly user: string
  readonly password: string
}

/** A remote database for one session. Its end also ends all of PouchDB's requests, open and later ones. */
export interface Remote {
  readonly db: Db
  /** The failure behind an error of PouchDB, from the error and from failed requests. */
  failureOf(thrown: unknown): Failure
  /** Whether a request is open so long, by wall clock, that its connection may be dead. */
  hangs(): boolean
  /** Aborts all open requests, even while their answers are read. */
  end(): void
  /** Call this after `end`, once PouchDB has noticed the end. */
  close(): Promise<unknown>
}

export interface RemoteOptions {
  /** Time without data after which a request fails, milliseconds. */
  readonly silenceMs?: number
  /** Called with the database's sequence before PouchDB's first read, and with each batch; the answer waits for it. */
  readonly onSeq?: (seq: unknown) => Promise<void>
}

/** How long the server holds a feed without changes. */
export const FEED_MS = 25_000
/** After this time without data, the server is gone: it should have answered. */
const FEED_SILENCE_MS = FEED_MS + 20_000
/** Maximum silence of a busy server. */
const SILENCE_MS = 120_000

const CODES: Readonly<Record<number, string>> = { 401: 'denied', 403: 'denied', 404: 'gone' }

export function openRemote(
  PouchDB: Pouch,
  { url, user, password }: Target,
  { silenceMs = SILENCE_MS, onSeq }: RemoteOptions = {},
): Remote {
  const open = new Set<OpenRequest>()
  let isOver = false
  let seen: Failure | undefined

  function onBegin(opened: OpenRequest): () => void {
    open.add(opened)
    return () => open.delete(opened)
  }

  async function request(address: string, init: RequestInit): Promise<Response> {
    if (isOver) throw new Error('the session is over')
    const { body } = init
    const isFeed = address.includes('feed=longpoll')
    const limits = { silenceMs: isFeed ? FEED_SILENCE_MS : silenceMs, onBegin }
    const fetchAnswer = (options: RequestInit) =>
      fetchWithLimits((at, how) => PouchDB.fetch(at, how), address, options, limits)
    const send = (body: string) => fetchAnswer({ ...init, body })
    try {
      const answer = await (typeof body === 'string' ? sendInParts(address, body, send) : fetchAnswer(init))
      seen = undefined
      return answer.ok ? answer : asJson(answer)
    } catch (thrown) {
      const isCancelled = init.signal?.aborted ?? false
      if (!isOver && !isCancelled) seen = { code: 'offline', reason: String(thrown) }
      throw thrown
    }
  }

  /** PouchDB sends this request beside a replication. It neither checks for a failure nor needs the answer. */
  async function aboutDatabase(address: string, init: RequestInit): Promise<Response> {
    const answer = await request(address, init).catch(() => Response.json({}))
    const info: unknown = await answer.json().catch(() => ({}))
    const { update_seq: seq } = (answer.ok ? info : {}) as { readonly update_seq?: unknown }
    if (seq !== undefined) await onSeq?.(seq)
    return Response.json(answer.ok ? info : {})
  }

  async function fetch(input: string | Request, init: RequestInit = {}): Promise<Response> {
    const address = typeof input === 'string' ? input : input.url
    return isSamePath(address, url) ? aboutDatabase(address, init) : request(address, init)
  }

  const db = new PouchDB(url, { adapter: 'http', skip_setup: true, auth: { username: user, password }, fetch })
  return {
    db,
    failureOf(thrown) {
      const status = statusOf(thrown)
      const code = status === undefined ? undefined : CODES[status]
      if (code === undefined && seen) return seen
      const reason = thrown instanceof Error ? thrown.message : JSON.stringify(thrown)
      return { code: code ?? 'failed', reason: `${status ?? ''} ${reason}`.trim() }
    },
    hangs: () => [...open].some((opened) => opened.silentMs() > FEED_MS),
    end() {
      isOver = true
      for (const opened of open) opened.abort()
    },
    close: () => db.close(),
  }
}

const isSamePath = (address: string, url: string): boolean =>
  new URL(address).pathname.replace(/\/$/, '') === new URL(url).pathname

/** Converts an error page of a proxy to CouchDB's JSON: otherwise PouchDB does not report the status. */
function asJson(answer: Response): Response {
  if (answer.headers.get('content-type')?.includes('json')) return answer
  const { status, statusText } = answer
  const said = { error: 'failed', reason: `the answer is ${status} ${statusText}, and not of CouchDB` }
  return Response.json(said, { status, statusText })
}
