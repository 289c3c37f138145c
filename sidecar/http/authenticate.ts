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
  /** The client that failed logins of a request are counted for. */
  readonly clientOf: (c: Context) => string
  /** How long an answer of CouchDB is believed: the rights of a user end so long after their change. Default 5 s. */
  readonly believedMs?: number
  readonly clock: Clock
}

/**
 * The user who sends a request; `undefined` where the credentials are wrong. Throws `HttpError` where they may not be
 * tried now, `CouchError` where CouchDB cannot be asked.
 */
export type Authenticate = (c: Context) => Promise<UserCtx | undefined>

/** Of each kind. */
const MAX_REMEMBERED = 1_000
/** Within five minutes. CouchDB locks a name out after five; two are left for other programs at the sidecar's address. */
const FAILURES_OF_NAME = 3
/** Within five minutes, with any names. */
const FAILURES_OF_CLIENT = 10

interface Remembered {
  readonly userCtx: UserCtx | undefined
  /** By the clock's ticks. */
  readonly until: number
}

/**
 * Asks CouchDB for the user of a request, with the request's own credentials (`session.ts`). One question answers all
 * requests that come meanwhile: hundreds of readers of a feed may come back at once. The answer is remembered under a hash of
 * the credentials; those that name no user are remembered apart, so that invented ones cannot push out real users.
 *
 * Failed logins are limited for each client, and for each name below CouchDB's own limit, so that no name is locked out
 * through the sidecar. A program with an old password does no harm: a wrong password is not tried again for five
 * minutes. Nor do guesses to others: a password that was right is always tried.
 */
export const createAuthenticate = (options: AuthenticateOptions): Authenticate =>
  createAuthenticators(options).authenticate

export interface Authenticators {
  readonly authenticate: Authenticate
  /** The same of a name and a password that a person has typed, with the same limits. */
  readonly login: (c: Context, name: string, password: string) => Promise<UserCtx | undefined>
}

/** As `createAuthenticate`. */
export function createAuthenticators(options: AuthenticateOptions): Authenticators {
  const { clientOf, believedMs = 5_000, clock } = options
  const { whoIs, own } = options.sessions
  const asking = new Map<string, Promise<UserCtx | undefined>>()
  const users = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  const strangers = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  /** Hashes of logins that were right when they were last tried. */
  const proven = new LRUCache<string, true>({ max: MAX_REMEMBERED })
  const failures = createFailedLogins(clock)
  const oneByOne = createMutexByKey()
  const semaphore = new Semaphore(() => MAX_CONNECTIONS)
  const never = new AbortController().signal // the first to ask may leave before the others

  /** For one name one after the other: those under way might all fail. */
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

  function ask(key: string, credentials: Credentials, client: string): Promise<UserCtx | undefined> {
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
      .finally(() => asking.delete(key))
    asking.set(key, remembered)
    return remembered
  }

  async function check(credentials: Credentials, client: string): Promise<UserCtx | undefined> {
    const key = hashOf(credentials)
    const known = users.get(key) ?? strangers.get(key)
    if (known && clock.ticks() < known.until) return known.userCtx
    return asking.get(key) ?? ask(key, credentials, client)
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

/** Its bytes, as a login has them. */
const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

/** CouchDB has locked the name out, or refuses the sidecar itself. */
function refusedName(thrown: unknown): never {
  if (!isCouchError(thrown, 'forbidden')) throw thrown
  const options = { cause: thrown, headers: { 'Retry-After': '60' } }
  throw new HttpError(503, 'service_unavailable', 'CouchDB refuses this name for now. Try again later.', options)
}

/** On a server without admins ("admin party") CouchDB takes everyone for an admin, and so does this. */
export const hasRole = (userCtx: UserCtx | undefined, roles: readonly string[]): boolean =>
  userCtx?.roles.some((role) => roles.includes(role)) ?? false

export const isAdmin = (userCtx: UserCtx | undefined): boolean => hasRole(userCtx, ['_admin'])

/** The refusal of a request: 401 where the user is unknown, 403 where the rights do not suffice. */
export function refusalOf(userCtx: UserCtx | undefined, reason = 'You are not a server admin.'): HttpError {
  if (userCtx?.name) return new HttpError(403, 'forbidden', reason)
  return new HttpError(401, 'unauthorized', userCtx ? reason : 'Name or password is incorrect.', { headers })
}

const headers = { 'WWW-Authenticate': 'Basic realm="couchdb-sidecar"' }

const hashOf = ({ authorization = '', cookie = '' }: Credentials): string =>
  createHash('sha256').update(`${authorization}\n${cookie}`).digest('base64')

interface FailedLogins {
  /** How long until a login of this key may be tried, milliseconds; 0: now. */
  waitMs(key: string, most: number): number
  add(key: string): void
}

/** CouchDB forgets failures as old as that. */
const COUNTED_MS = 300_000
/** Beyond that the keys that failed longest ago are forgotten. */
const MAX_KEYS = 10_000

/** Counts the failed logins of the last five minutes by name, and by client. In memory, for each process by itself. */
function createFailedLogins(clock: Clock): FailedLogins {
  /** By the clock's ticks, the oldest first. */
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
  /** One of them will do. Default: that of server admins. */
  readonly roles?: readonly string[]
  /** What those are told who have none of them. */
  readonly reason?: string
}

/** Lets in server admins only, or users with one of the roles. CouchDB says which user it is (`authenticate.ts`). */
export function adminOnly({ authenticate, roles = ['_admin'], reason }: AdminOnlyOptions): MiddlewareHandler {
  return async function adminOnly(c, next) {
    const userCtx = await authenticate(c)
    if (!hasRole(userCtx, roles)) throw refusalOf(userCtx, reason)
    await next()
  }
}
