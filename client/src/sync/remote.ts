import { statusOf, type Db, type Pouch } from '../pouch.ts'
import type { Failure } from '../status.ts'

/** Where, and as whom. */
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
  /** Breaks off what is under way. */
  end(): void
  /** After `end`, when PouchDB has noticed. */
  close(): Promise<unknown>
}

/** How long the server holds a feed that has nothing to tell. */
export const FEED_MS = 25_000
/** Who has heard nothing for so long after that hears nothing any more. */
const SILENCE_MS = 20_000

const CODES: Readonly<Record<number, string>> = { 401: 'denied', 403: 'denied', 404: 'gone' }

export function openRemote(PouchDB: Pouch, { url, user, password }: Target): Remote {
  const open = new Set<AbortController>()
  let isOver = false
  let seen: Failure | undefined

  async function fetch(input: string | Request, init: RequestInit = {}): Promise<Response> {
    if (isOver) throw new Error('the session is over')
    const address = typeof input === 'string' ? input : input.url
    const asking = new AbortController()
    const abort = () => asking.abort()
    open.add(asking)
    if (init.signal?.aborted) abort()
    init.signal?.addEventListener('abort', abort)
    const silence = address.includes('feed=longpoll') ? setTimeout(abort, FEED_MS + SILENCE_MS) : undefined
    try {
      // No cookies: they are of another user, or of none; and no browser asks for a password.
      const answer = await PouchDB.fetch(address, { ...init, credentials: 'omit', signal: asking.signal })
      const whole = await read(answer)
      seen = undefined
      return whole
    } catch (thrown) {
      const isCancelled = init.signal?.aborted ?? false
      if (!isOver && !isCancelled) seen = { code: 'offline', reason: String(thrown) }
      // PouchDB asks for it beside a replication, and does not look whether that failed.
      if (address.replace(/\/$/, '') === url) return Response.json({})
      throw thrown
    } finally {
      clearTimeout(silence)
      init.signal?.removeEventListener('abort', abort)
      open.delete(asking)
    }
  }

  const db = new PouchDB(url, { skip_setup: true, auth: { username: user, password }, fetch })
  return {
    db,
    failureOf(thrown) {
      const status = statusOf(thrown)
      const code = status === undefined ? undefined : CODES[status]
      if (code === undefined && seen) return seen
      const reason = thrown instanceof Error ? thrown.message : JSON.stringify(thrown)
      return { code: code ?? 'failed', reason: `${status ?? ''} ${reason}`.trim() }
    },
    end() {
      isOver = true
      for (const asking of open) asking.abort()
    },
    close: () => db.close(),
  }
}

/** Its body, too: so what is said of a request holds until it is over. An attachment is left to PouchDB. */
async function read(answer: Response): Promise<Response> {
  if (!answer.headers.get('content-type')?.includes('json')) return answer
  const { status, statusText } = answer
  const headers = { 'Content-Type': 'application/json' }
  return new Response(await answer.text(), { status, statusText, headers })
}
