import { createHash } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import type { Clock } from '../core/clock.ts'
import type { Caller, Credentials, WhoIs } from '../couch/session.ts'
import { HttpError } from './errors.ts'

export interface AdminOnlyOptions {
  readonly whoIs: WhoIs
  readonly clock: Clock
  /** One of them will do. Default: that of server admins. */
  readonly roles?: readonly string[]
  /** What those are told who have none of them. */
  readonly reason?: string
}

/** How long an answer of CouchDB is believed: a password that was changed ends a right after so long. */
const BELIEVED_MS = 5_000
const MAX_REMEMBERED = 1_000

/**
 * Lets in server admins only, or whoever has one of the roles. Who somebody is, CouchDB says, asked with the caller's
 * own credentials. The answer is remembered for seconds under a hash of them. On a server without admins ("admin party")
 * CouchDB takes everybody for one, and so does this.
 */
export function adminOnly({
  whoIs,
  clock,
  roles = ['_admin'],
  reason = 'You are not a server admin.',
}: AdminOnlyOptions): MiddlewareHandler {
  const remembered = new Map<string, { caller: Caller | undefined; until: number }>()

  async function ask(credentials: Credentials, signal: AbortSignal): Promise<Caller | undefined> {
    const key = hashOf(credentials)
    const known = remembered.get(key)
    if (known && clock.ticks() < known.until) return known.caller
    const caller = await whoIs(credentials, signal)
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(key, { caller, until: clock.ticks() + BELIEVED_MS })
    return caller
  }

  return async function adminOnly(c, next) {
    const credentials = { authorization: c.req.header('authorization'), cookie: c.req.header('cookie') }
    const caller = await ask(credentials, c.req.raw.signal)
    if (!caller?.roles.some((role) => roles.includes(role))) {
      if (caller?.name) throw new HttpError(403, 'forbidden', reason)
      throw new HttpError(401, 'unauthorized', caller ? reason : 'Name or password is incorrect.', { headers })
    }
    await next()
  }
}

const headers = { 'WWW-Authenticate': 'Basic realm="couchdb-sidecar"' }

const hashOf = ({ authorization = '', cookie = '' }: Credentials): string =>
  createHash('sha256').update(`${authorization}\n${cookie}`).digest('base64')
