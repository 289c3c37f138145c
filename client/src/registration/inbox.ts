/** The sidecar's inbox over HTTP. Every answer, and a missing one, becomes one of a few outcomes. */
import type { Failure } from '../client-status.ts'
import type { Hashing } from './credentials.ts'

/** Status of a document in the inbox. */
export interface InboxStatus {
  /** A request for another mail must name it. */
  readonly _rev?: string
  readonly state: string
  readonly error?: { readonly code: string; readonly at?: string }
  readonly user?: string
  /** The user's control database, once it exists. */
  readonly database?: string
  readonly syncpoint?: string
}

/** Worth another attempt, after `afterMs` at the earliest. */
export interface Later {
  readonly kind: 'later'
  readonly failure: Failure
  readonly afterMs?: number
}

export type Sent =
  | { readonly kind: 'taken'; readonly rev: string | undefined }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another document has this id, or the document has changed. */
  | { readonly kind: 'conflict' }
  | Later

export type StatusAnswer =
  { readonly kind: 'status'; readonly status: InboxStatus } | { readonly kind: 'unknown' } | Later

export interface Inbox {
  /** How the server hashes passwords; undefined if the inbox does not report it. */
  hashing(signal: AbortSignal): Promise<{ readonly kind: 'known'; readonly hashing?: Hashing } | Later>
  send(doc: object, signal: AbortSignal): Promise<Sent>
  status(id: string, secret: string, signal: AbortSignal): Promise<StatusAnswer>
}

const ANSWER_MS = 20_000

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly afterMs: number | undefined
}

/** @param url of the inbox, without a slash at its end */
export function createInbox(url: string): Inbox {
  async function request(path: string, init: RequestInit, signal: AbortSignal): Promise<Answer | Later> {
    const controller = new AbortController()
    const abort = () => controller.abort()
    const timer = setTimeout(abort, ANSWER_MS)
    signal.addEventListener('abort', abort)
    try {
      const answer = await fetch(url + path, {
        ...init,
        credentials: 'omit',
        cache: 'no-store',
        signal: controller.signal,
      })
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
      const answer = await request('', {}, signal)
      if ('kind' in answer) return answer
      if (answer.status !== 200) return laterThan(answer)
      const hashing = hashingIn(answer.body.credentials)
      return { kind: 'known', ...(hashing && { hashing }) }
    },

    async send(doc, signal) {
      const headers = { 'Content-Type': 'application/json' }
      const answer = await request('', { method: 'POST', headers, body: JSON.stringify(doc) }, signal)
      if ('kind' in answer) return answer
      const { status, body } = answer
      if (status === 201) return { kind: 'taken', rev: textOf(body.rev) }
      if (status === 409) return { kind: 'conflict' }
      const reason = textOf(body.reason)
      // A proxy's page does not concern the document.
      if ((status === 400 || status === 403) && reason !== undefined) return { kind: 'refused', reason }
      return laterThan(answer)
    },

    async status(id, secret, signal) {
      const headers = { Authorization: `Bearer ${secret}` }
      const answer = await request(`/${encodeURIComponent(id)}`, { headers }, signal)
      if ('kind' in answer) return answer
      const { status, body } = answer
      if (status === 200 && typeof body.state === 'string')
        return { kind: 'status', status: body as unknown as InboxStatus }
      // A proxy's 404 has another body, and does not mean that the document is unknown.
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

/** Reads the fields of `_users`; without a function, the hash is SHA-1. */
function hashingIn(credentials: unknown): Hashing | undefined {
  const {
    password_scheme: scheme,
    pbkdf2_prf: prf = 'sha',
    iterations,
  } = (credentials ?? {}) as Record<string, unknown>
  const isKnown = scheme === 'pbkdf2' && (prf === 'sha' || prf === 'sha256')
  return isKnown && typeof iterations === 'number' ? { prf, iterations } : undefined
}
