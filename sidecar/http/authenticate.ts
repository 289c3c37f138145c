import { createHash } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/clock.ts'
import { createMutexByKey } from '../core/mutex.ts'
import { Semaphore } from '../core/semaphore.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { headerOf, loginFrom, nameIn, type Login } from '../couch/login.ts'
import { MAX_CONNECTIONS, type UserCtx, type Credentials, type Sessions } from '../couch/session.ts'
import { HttpError } from './http-errors.ts'

export interface AuthenticateOptions {
  readonly sessions: Pick<Sessions, 'whoIs' | 'own'>
  /** Returns the client that failed logins count against. */
  readonly clientOf: (c: Context) => string
  /** How long an answer of CouchDB is cached: a change of a user's rights takes effect after that. Default 5 s. */
  readonly believedMs?: number
  readonly clock: Clock
}

/**
 * Returns the user of a request; `undefined` if the credentials are wrong. Throws `HttpError` if the credentials may
 * not be tried now, `CouchError` if CouchDB cannot be reached.
 */
export type Authenticate = (c: Context) => Promise<UserCtx | undefined>

/** Maximum entries of each cache. */
const MAX_REMEMBERED = 1_000
/** Per name within five minutes. CouchDB locks a name out after five; two remain for programs at the same address. */
const FAILURES_OF_NAME = 3
/** Failed logins per client within five minutes, with any names. */
const FAILURES_OF_CLIENT = 10

interface Remembered {
  readonly userCtx: UserCtx | undefined
  /** In the clock's ticks. */
  readonly until: number
}

/**
 * Checks a request's credentials with CouchDB (`session.ts`). Concurrent requests with the same credentials share one
 * check: hundreds of feed readers may return at once. The answer is cached under a hash of the credentials. Credentials
 * that name no user have a separate cache, so that invented ones cannot evict real users.
 *
 * Failed logins are limited per client, and per name below CouchDB's own limit. So the sidecar causes no lockout of a
 * name. A wrong password is not tried again for five minutes, so a program with an old password does no harm. A
 * password that was right before is always tried, so guesses by others do no harm either.
 */
export const createAuthenticate = (options: AuthenticateOptions): Authenticate =>
  createAuthenticators(options).authenticate

export interface Authenticators {
  readonly authenticate: Authenticate
  /** Checks a name and a password that a person has typed, with the same limits. */
  readonly login: (c: Context, name: string, password: string) => Promise<UserCtx | undefined>
}

/** Like `createAuthenticate`, with a check for typed logins. */
export function createAuthenticators(options: AuthenticateOptions): Authenticators {
  const { clientOf, believedMs = 5_000, clock } = options
  const { whoIs, own } = options.sessions
  const underWay = new Map<string, Promise<UserCtx | undefined>>()
  const users = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  const strangers = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  /** Hashes of logins that were right at their last check. */
  const proven = new LRUCache<string, true>({ max: MAX_REMEMBERED })
  const failures = createFailedLogins(clock)
  const oneByOne = createMutexByKey()
  const semaphore = new Semaphore(() => MAX_CONNECTIONS)
  const never = new AbortController().signal // the first client may leave before the others that share its check

  /** Checks the logins of one name one at a time: concurrent ones could all fail, beyond the limit. */
  const tryLogin = (key: string, login: Login, credentials: Credentials, client: string) =>
    oneByOne(login.name, () =>
      semaphore.run(async () => {
        if (!proven.has(key)) checkLimits(login, client)
        const userCtx = await whoIs(credentials, never)
        proven.delete(key)
        if (userCtx?.name === nameIn(login)) proven.set(key, true)
        if (userCtx) return userCtx
        failures.add(`client ${client}`)
        failures.add(`name ${login.name}`)
        return undefined
      }),
    )

  function checkLimits({ name }: Login, client: string): void {
    const forName = name === own?.name ? 0 : failures.waitMs(`name ${name}`, FAILURES_OF_NAME)
    const waitMs = Math.max(forName, failures.waitMs(`client ${client}`, FAILURES_OF_CLIENT))
    if (waitMs === 0) return
    const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) }
    throw new HttpError(429, 'too_many_requests', 'Too many logins have failed. Try again later.', { headers })
  }

  function request(key: string, credentials: Credentials, client: string): Promise<UserCtx | undefined> {
    const login = loginFrom(credentials.authorization)
    const answer = login ? tryLogin(key, login, credentials, client) : whoIs(credentials, never)
    const remembered = answer
      .then((userCtx) => {
        const until = clock.ticks() + (login && !userCtx ? COUNTED_MS : believedMs)
        const [kind, other] = userCtx?.name ? [users, strangers] : [strangers, users]
        kind.set(key, { userCtx, until })
        other.delete(key)
        return userCtx
      }, refusedName)
      .finally(() => underWay.delete(key))
    underWay.set(key, remembered)
    return remembered
  }

  async function check(credentials: Credentials, client: string): Promise<UserCtx | undefined> {
    const key = hashOf(credentials)
    const known = users.get(key) ?? strangers.get(key)
    if (known && clock.ticks() < known.until) return known.userCtx
    return underWay.get(key) ?? request(key, credentials, client)
  }

  return {
    authenticate: (c) =>
      check({ authorization: c.req.header('authorization'), cookie: c.req.header('cookie') }, clientOf(c)),
    async login(c, name, password) {
      const typed = { name: latin1(name), password: latin1(password) }
      return check({ authorization: headerOf(typed) }, clientOf(c))
    },
  }
}

/** The text's UTF-8 bytes in latin1, as a login holds them. */
const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

/** Handles `forbidden`: CouchDB has locked the name out, or refuses the sidecar itself. */
function refusedName(thrown: unknown): never {
  if (!isCouchError(thrown, 'forbidden')) throw thrown
  const options = { cause: thrown, headers: { 'Retry-After': '60' } }
  throw new HttpError(503, 'service_unavailable', 'CouchDB refuses this name for now. Try again later.', options)
}

/** A server without admins ("admin party") gives every user the role of an admin. */
export const hasRole = (userCtx: UserCtx | undefined, roles: readonly string[]): boolean =>
  userCtx?.roles.some((role) => roles.includes(role)) ?? false

export const isAdmin = (userCtx: UserCtx | undefined): boolean => hasRole(userCtx, ['_admin'])

/** Returns the refusal of a request: 401 for an unknown user, 403 for insufficient rights. */
export function refusalOf(userCtx: UserCtx | undefined, reason = 'You are not a server admin.'): HttpError {
  if (userCtx?.name) return new HttpError(403, 'forbidden', reason)
  return new HttpError(401, 'unauthorized', userCtx ? reason : 'Name or password is incorrect.', { headers })
}

const headers = { 'WWW-Authenticate': 'Basic realm="couchdb-sidecar"' }

const hashOf = ({ authorization = '', cookie = '' }: Credentials): string =>
  createHash('sha256').update(`${authorization}\n${cookie}`).digest('base64')

interface FailedLogins {
  /** Milliseconds until a login of this key may be tried; 0: now. */
  waitMs(key: string, most: number): number
  add(key: string): void
}

/** CouchDB forgets failures after this time. */
const COUNTED_MS = 300_000
/** Beyond this number, the keys with the oldest failures are forgotten. */
const MAX_KEYS = 10_000

/** Counts failed logins of the last five minutes per name and per client. In memory, separate for each process. */
function createFailedLogins(clock: Clock): FailedLogins {
  /** In the clock's ticks, the oldest first. */
  const failures = new LRUCache<string, readonly number[]>({ max: MAX_KEYS })
  const recent = (key: string) => (failures.peek(key) ?? []).filter((at) => clock.ticks() - at < COUNTED_MS)

  return {
    waitMs(key, most) {
      const times = recent(key)
      return times.length < most ? 0 : times.at(-most)! + COUNTED_MS - clock.ticks()
    },
    add(key) {
      failures.set(key, [...recent(key), clock.ticks()])
    },
  }
}

export interface AdminOnlyOptions {
  readonly authenticate: Authenticate
  /** One of these roles suffices. Default: the role of server admins. */
  readonly roles?: readonly string[]
  /** Reason in the refusal of other users. */
  readonly reason?: string
}

/** Admits only server admins, or users with one of the roles. CouchDB authenticates the user (`authenticate.ts`). */
export function adminOnly({ authenticate, roles = ['_admin'], reason }: AdminOnlyOptions): MiddlewareHandler {
  return async function adminOnly(c, next) {
    const userCtx = await authenticate(c)
    if (!hasRole(userCtx, roles)) throw refusalOf(userCtx, reason)
    await next()
  }
}
