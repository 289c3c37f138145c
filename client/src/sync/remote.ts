import { statusOf, type Db, type Pouch } from '../pouch.ts'
import type { Failure } from '../client-status.ts'
import { sendInParts } from './parts.ts'
import { ask, type Asking } from './request.ts'

/** Where, and with which credentials. */
export interface Target {
  readonly url: string
  readonly user: string
  readonly password: string
}

/** A remote database for one session. When that is over, so is every request that PouchDB still has, or would begin. */
export interface Remote {
  readonly db: Db
  /** Why it broke, by what PouchDB threw and by what was seen on the way. */
  failureOf(thrown: unknown): Failure
  /** Something was asked so long ago, by the clock of the wall, that its connection may be dead. */
  hangs(): boolean
  /** Breaks off what is under way, answers that are being read as well. */
  end(): void
  /** After `end`, when PouchDB has noticed. */
  close(): Promise<unknown>
}

export interface RemoteOptions {
  /** Who has heard nothing for so long, milliseconds, hears nothing any more. */
  readonly silenceMs?: number
  /** PouchDB has asked how far the database is, before its first read and with each batch; the answer waits for this. */
  readonly onSeq?: (seq: unknown) => Promise<void>
}

/** How long the server holds a feed that has nothing to tell. */
export const FEED_MS = 25_000
/** So long after that it has answered, unless it is away. */
const FEED_SILENCE_MS = FEED_MS + 20_000
/** A server that has much to do may take its time, but not so much. */
const SILENCE_MS = 120_000

const CODES: Readonly<Record<number, string>> = { 401: 'denied', 403: 'denied', 404: 'gone' }

export function openRemote(
  PouchDB: Pouch,
  { url, user, password }: Target,
  { silenceMs = SILENCE_MS, onSeq }: RemoteOptions = {},
): Remote {
  const open = new Set<Asking>()
  let isOver = false
  let seen: Failure | undefined

  function onBegin(asking: Asking): () => void {
    open.add(asking)
    return () => open.delete(asking)
  }

  async function request(address: string, init: RequestInit): Promise<Response> {
    if (isOver) throw new Error('the session is over')
    const { body } = init
    const isFeed = address.includes('feed=longpoll')
    const limits = { silenceMs: isFeed ? FEED_SILENCE_MS : silenceMs, onBegin }
    const asked = (asking: RequestInit) => ask((at, how) => PouchDB.fetch(at, how), address, asking, limits)
    const send = (body: string) => asked({ ...init, body })
    try {
      const answer = await (typeof body === 'string' ? sendInParts(address, body, send) : asked(init))
      seen = undefined
      return answer.ok ? answer : asJson(answer)
    } catch (thrown) {
      const isCancelled = init.signal?.aborted ?? false
      if (!isOver && !isCancelled) seen = { code: 'offline', reason: String(thrown) }
      throw thrown
    }
  }

  /** PouchDB asks for it beside a replication, and does not look whether that failed; nor does it need the answer. */
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
    hangs: () => [...open].some((asking) => asking.silentMs() > FEED_MS),
    end() {
      isOver = true
      for (const asking of open) asking.abort()
    },
    close: () => db.close(),
  }
}

const isSamePath = (address: string, url: string): boolean =>
  new URL(address).pathname.replace(/\/$/, '') === new URL(url).pathname

/** What has gone wrong, in the words of CouchDB: a proxy has pages for that, of which PouchDB would not tell the status. */
function asJson(answer: Response): Response {
  if (answer.headers.get('content-type')?.includes('json')) return answer
  const { status, statusText } = answer
  const said = { error: 'failed', reason: `the answer is ${status} ${statusText}, and not of CouchDB` }
  return Response.json(said, { status, statusText })
}
