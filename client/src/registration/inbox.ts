/** The sidecar's inbox over HTTP. Every answer becomes one of a few outcomes, and so does none. */
import type { Failure } from '../client-status.ts'
import type { Hashing } from './credentials.ts'

/** What the inbox tells of a document. */
export interface InboxStatus {
  /** To be named when another mail is asked for. */
  readonly _rev?: string
  readonly state: string
  readonly error?: { readonly code: string; readonly at?: string }
  readonly user?: string
  /** The user's control database, once it is there. */
  readonly database?: string
  readonly syncpoint?: string
}

/** Worth another try, not before so long. */
export interface Later {
  readonly kind: 'later'
  readonly failure: Failure
  readonly afterMs?: number
}

export type Sent =
  | { readonly kind: 'taken'; readonly rev: string | undefined }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Something else is there under this id, or it has changed. */
  | { readonly kind: 'conflict' }
  | Later

export type Asked = { readonly kind: 'status'; readonly status: InboxStatus } | { readonly kind: 'unknown' } | Later

export interface Inbox {
  /** How the server hashes passwords; undefined where it does not tell. */
  hashing(signal: AbortSignal): Promise<{ readonly kind: 'told'; readonly hashing?: Hashing } | Later>
  send(doc: object, signal: AbortSignal): Promise<Sent>
  status(id: string, secret: string, signal: AbortSignal): Promise<Asked>
}

const ANSWER_MS = 20_000

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly afterMs: number | undefined
}

/** @param url of the inbox, without a slash at its end */
export function createInbox(url: string): Inbox {
  async function ask(path: string, init: RequestInit, signal: AbortSignal): Promise<Answer | Later> {
    const asking = new AbortController()
    const abort = () => asking.abort()
    const timer = setTimeout(abort, ANSWER_MS)
    signal.addEventListener('abort', abort)
    try {
      const answer = await fetch(url + path, { ...init, credentials: 'omit', cache: 'no-store', signal: asking.signal })
      const body: unknown = await answer.json().catch(() => ({}))
      const after = Number(answer.headers.get('retry-after') ?? NaN)
      const afterMs = Number.isFinite(after) ? after * 1000 : undefined
      return { status: answer.status, body: (body ?? {}) as Answer['body'], afterMs }
    } catch (thrown) {
      return { kind: 'later', failure: { code: 'offline', reason: String(thrown) } }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  return {
    async hashing(signal) {
      const answer = await ask('', {}, signal)
      if ('kind' in answer) return answer
      if (answer.status !== 200) return laterThan(answer)
      const hashing = hashingIn(answer.body.credentials)
      return { kind: 'told', ...(hashing && { hashing }) }
    },

    async send(doc, signal) {
      const headers = { 'Content-Type': 'application/json' }
      const answer = await ask('', { method: 'POST', headers, body: JSON.stringify(doc) }, signal)
      if ('kind' in answer) return answer
      const { status, body } = answer
      if (status === 201) return { kind: 'taken', rev: textOf(body.rev) }
      if (status === 409) return { kind: 'conflict' }
      const reason = textOf(body.reason)
      // A proxy's page says nothing of the document.
      if ((status === 400 || status === 403) && reason !== undefined) return { kind: 'refused', reason }
      return laterThan(answer)
    },

    async status(id, secret, signal) {
      const headers = { Authorization: `Bearer ${secret}` }
      const answer = await ask(`/${encodeURIComponent(id)}`, { headers }, signal)
      if ('kind' in answer) return answer
      const { status, body } = answer
      if (status === 200 && typeof body.state === 'string')
        return { kind: 'status', status: body as unknown as InboxStatus }
      // A proxy's 404 has another body: it does not say that the inbox knows no such document.
      if (status === 404 && body.error === 'not_found') return { kind: 'unknown' }
      return laterThan(answer)
    },
  }
}

function laterThan({ status, body, afterMs }: Answer): Later {
  const reason = `the inbox answers ${status}: ${textOf(body.reason) ?? 'without a reason'}`
  return { kind: 'later', failure: { code: 'unavailable', reason }, ...(afterMs !== undefined && { afterMs }) }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** As it would stand in `_users`; without a function it is SHA-1. */
function hashingIn(credentials: unknown): Hashing | undefined {
  const {
    password_scheme: scheme,
    pbkdf2_prf: prf = 'sha',
    iterations,
  } = (credentials ?? {}) as Record<string, unknown>
  const isKnown = scheme === 'pbkdf2' && (prf === 'sha' || prf === 'sha256')
  return isKnown && typeof iterations === 'number' ? { prf, iterations } : undefined
}
