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

interface Remembered {
  readonly caller: Promise<Caller | undefined>
  /** By the clock's ticks. */
  until: number
}

/**
 * Asks CouchDB who somebody is, with the caller's own credentials. The answer is remembered for seconds under a hash of
 * them, and one question answers all who come meanwhile: hundreds of readers of a feed may come back at once.
 */
export function createCallers({ whoIs, clock }: CallersOptions): CallerOf {
  const remembered = new Map<string, Remembered>()
  const never = new AbortController().signal // whoever asks first may leave before the others

  function ask(key: string, credentials: Credentials): Promise<Caller | undefined> {
    const asked: Remembered = { caller: whoIs(credentials, never), until: Infinity }
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(key, asked)
    asked.caller.then(
      () => (asked.until = clock.ticks() + BELIEVED_MS),
      () => remembered.delete(key),
    )
    return asked.caller
  }

  return async function callerOf(c) {
    const credentials = { authorization: c.req.header('authorization'), cookie: c.req.header('cookie') }
    const key = hashOf(credentials)
    const known = remembered.get(key)
    return known && clock.ticks() < known.until ? known.caller : ask(key, credentials)
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
