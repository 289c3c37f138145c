import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { Clock } from '../core/clock.ts'
import type { Caller, Credentials, WhoIs } from '../couch/session.ts'
import { HttpError } from './errors.ts'

export interface CallersOptions {
  readonly whoIs: WhoIs
  readonly clock: Clock
}

/** Who sends a request; `undefined` where CouchDB refuses the credentials. */
export type CallerOf = (c: Context) => Promise<Caller | undefined>

/** How long an answer of CouchDB is believed: a password that was changed ends a right after so long. */
const BELIEVED_MS = 5_000
const MAX_REMEMBERED = 1_000

/**
 * Asks CouchDB who somebody is, with the caller's own credentials. The answer is remembered for seconds under a hash of
 * them.
 */
export function createCallers({ whoIs, clock }: CallersOptions): CallerOf {
  const remembered = new Map<string, { caller: Caller | undefined; until: number }>()

  return async function callerOf(c) {
    const credentials = { authorization: c.req.header('authorization'), cookie: c.req.header('cookie') }
    const key = hashOf(credentials)
    const known = remembered.get(key)
    if (known && clock.ticks() < known.until) return known.caller
    const caller = await whoIs(credentials, c.req.raw.signal)
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(key, { caller, until: clock.ticks() + BELIEVED_MS })
    return caller
  }
}

/** On a server without admins ("admin party") CouchDB takes everybody for one, and so does this. */
export const hasRole = (caller: Caller | undefined, roles: readonly string[]): boolean =>
  caller?.roles.some((role) => roles.includes(role)) ?? false

export const isAdmin = (caller: Caller | undefined): boolean => hasRole(caller, ['_admin'])

/** For somebody who may not have what they ask for: who they are, where that is not known, or that it will not do. */
export function refusalOf(caller: Caller | undefined, reason = 'You are not a server admin.'): HttpError {
  if (caller?.name) return new HttpError(403, 'forbidden', reason)
  return new HttpError(401, 'unauthorized', caller ? reason : 'Name or password is incorrect.', { headers })
}

const headers = { 'WWW-Authenticate': 'Basic realm="couchdb-sidecar"' }

const hashOf = ({ authorization = '', cookie = '' }: Credentials): string =>
  createHash('sha256').update(`${authorization}\n${cookie}`).digest('base64')
