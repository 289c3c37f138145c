import { Agent, request } from 'undici'
import { sameText } from '../core/same-text.ts'
import { CouchError, codeOf } from './couch-errors.ts'
import { withDeadline } from './deadline.ts'
import { headerOf, isBasic, loginFrom, loginIn, nameIn, type Login } from './login.ts'

/** The user that CouchDB authenticates for a request. An anonymous user has the name `null`. */
export interface UserCtx {
  readonly name: string | null
  readonly roles: readonly string[]
}

/** The headers that authenticate a user. */
export interface Credentials {
  readonly authorization?: string | undefined
  readonly cookie?: string | undefined
}

/**
 * Authenticates a user; `undefined` if CouchDB refuses the credentials. Throws `CouchError` if CouchDB cannot check
 * them. Code `forbidden`: CouchDB refuses the name for now, with any password.
 */
export type WhoIs = (credentials: Credentials, signal: AbortSignal) => Promise<UserCtx | undefined>

export interface SessionsOptions {
  /** URL of the server, with the sidecar's own name and password. */
  readonly url: string
  /** Whether CouchDB currently refuses the sidecar's name and password. */
  readonly isRefused?: () => boolean
}

export interface Sessions {
  readonly whoIs: WhoIs
  /**
   * Starts a CouchDB session. Returns the value of its cookie, which authenticates later requests, or `undefined` if
   * CouchDB refuses the password. Throws `CouchError`.
   */
  begin(login: { readonly name: string; readonly password: string }, signal: AbortSignal): Promise<string | undefined>
  /** Returns a renewed cookie if CouchDB sends one: only now and then, so idle sessions expire. Throws `CouchError`. */
  renew(cookie: string | undefined, signal: AbortSignal): Promise<string | undefined>
  /** The sidecar's own login. */
  readonly own: Login | undefined
  close(): Promise<void>
}

interface SentRequest {
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body?: string
}

interface SessionAnswer {
  readonly status: number
  readonly text: string
  /** Value of the session cookie, if CouchDB sets one. */
  readonly cookie: string | undefined
}

const TIMEOUT_MS = 5_000
/** Maximum concurrent requests: each wrong password costs CouchDB a full PBKDF2. */
export const MAX_CONNECTIONS = 4
const NAME = 'GET /_session'
const BEGIN = 'POST /_session'
/** 401: wrong password. 400: malformed credentials, such as a malformed cookie. */
const REFUSALS: readonly number[] = [400, 401]
/** `CredentialsCheck.untilAccepted` has verified this role. */
const OWN_ROLES = ['_admin']

/**
 * Authenticates users at CouchDB with the credentials of their requests. Separate connections keep these credentials
 * apart from the sidecar's own. The sidecar's own password is compared here, without CouchDB. Otherwise five wrong
 * passwords would lock it out. CouchDB locks a name by address, and these requests come from the sidecar's address.
 */
export function createSessions({ url, isRefused = () => false }: SessionsOptions): Sessions {
  const address = new URL(url)
  const target = `${address.origin}${address.pathname.replace(/\/+$/, '')}/_session`
  const agent = new Agent({ connections: MAX_CONNECTIONS, keepAliveTimeout: TIMEOUT_MS })
  const own = loginIn(address)

  const send = (name: string, options: SentRequest, signal: AbortSignal): Promise<SessionAnswer> =>
    withDeadline(name, TIMEOUT_MS, signal, async (deadline) => {
      const method = options.body === undefined ? 'GET' : 'POST'
      const headers = { accept: 'application/json', ...options.headers }
      const sent = { ...options, method, headers, dispatcher: agent, signal: deadline } as const
      const answer = await request(target, sent).catch((thrown: unknown) => {
        throw new CouchError('unreachable', { request: name, reason: (thrown as Error).message }, { cause: thrown })
      })
      const { statusCode: status, body } = answer
      return { status, text: await body.text(), cookie: cookieIn(answer.headers) }
    })

  async function readSession(
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<UserCtx | undefined> {
    const { status, text } = await send(NAME, { headers }, signal)
    if (REFUSALS.includes(status)) return undefined
    if (status !== 200) throw new CouchError(codeOf(status), { request: NAME, status })
    return callerFrom(text)
  }

  function compare({ password }: Login): UserCtx | undefined {
    if (!sameText(password, own!.password)) return undefined
    if (!isRefused()) return { name: nameIn(own!), roles: OWN_ROLES }
    throw new CouchError('forbidden', { request: NAME, reason: 'CouchDB refuses the sidecar’s own login' })
  }

  return {
    own,
    async begin(login, signal) {
      const headers = { 'content-type': 'application/json' }
      const { status, cookie } = await send(BEGIN, { headers, body: JSON.stringify(login) }, signal)
      if (REFUSALS.includes(status)) return undefined
      if (status === 200 && cookie !== undefined) return cookie
      throw new CouchError(codeOf(status), { request: BEGIN, status })
    },
    async renew(cookie, signal) {
      if (cookie === undefined) return undefined
      const answer = await send(NAME, { headers: { cookie } }, signal)
      return answer.status === 200 ? answer.cookie : undefined
    },
    async whoIs({ authorization, cookie }, signal) {
      const session = cookie === undefined ? {} : { cookie }
      if (authorization === undefined) return readSession(session, signal)
      if (!isBasic(authorization)) return readSession({ ...session, authorization }, signal)
      const login = loginFrom(authorization)
      if (!login) return undefined
      if (login.name === own?.name) return compare(login)
      return readSession({ ...session, authorization: headerOf(login) }, signal)
    },
    close: () => agent.destroy(),
  }
}

const cookieIn = (headers: Readonly<Record<string, string | string[] | undefined>>): string | undefined =>
  /(?:^|,\s*)AuthSession=([^;,\s]+)/.exec(String(headers['set-cookie'] ?? ''))?.[1]

function callerFrom(text: string): UserCtx {
  try {
    const { name, roles } = (JSON.parse(text) as { userCtx: UserCtx }).userCtx
    return { name, roles: [...roles] }
  } catch (cause) {
    throw new CouchError('garbled', { request: NAME, reason: 'the answer is not a session' }, { cause })
  }
}
