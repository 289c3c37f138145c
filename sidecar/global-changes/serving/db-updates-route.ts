import { onAbort } from '../../core/on-abort.ts'
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Hono, type Context } from 'hono'
import type { Logger } from 'pino'
import { createAlarms } from '../../core/alarms.ts'
import type { Clock } from '../../core/clock.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { UserCtx } from '../../couch/session.ts'
import type { DbUpdates } from '../reading/db-updates.ts'
import type { Viewer } from '../reading/update.ts'
import { isAdmin, refusalOf, type Authenticate } from '../../http/authenticate.ts'
import { Body } from './db-updates-body.ts'
import { FORMATS } from './db-updates-format.ts'
import { queryFrom } from './db-updates-query.ts'
import { HttpError, methodNotAllowed } from '../../http/http-errors.ts'
import type { Recheck } from '../../http/recheck.ts'

export interface DbUpdatesRouteOptions {
  readonly feed: DbUpdates
  readonly authenticate: Authenticate
  readonly recheck: Recheck
  readonly clock: Clock
  readonly log: Logger
  /** Ends every answer properly when it aborts. */
  readonly signal: AbortSignal
}

/**
 * `GET /_db_updates`, as in CouchDB: events of databases. Server admins see all databases; a user sees those of the
 * account with the user's name, `name/…`.
 */
export function dbUpdatesRoute({ feed, authenticate, recheck, clock, log, signal }: DbUpdatesRouteOptions): Hono {
  const alarms = createAlarms(clock)
  const bodies = new Set<Body>()
  onAbort(signal, () => bodies.forEach((body) => body.end()))

  async function answer(c: Context, viewer: Viewer): Promise<Response> {
    const query = queryFrom(c.req)
    const headers: Record<string, string> = {
      'Content-Type': FORMATS[query.feed].type,
      'X-Accel-Buffering': 'no', // otherwise nginx buffers rows
    }
    if (query.feed === 'normal') {
      headers.ETag = etagOf([await feed.state(c.req.raw.signal), viewer, query])
      headers['Cache-Control'] = 'private, no-cache'
      if (namesIn(c.req.header('If-None-Match')).includes(headers.ETag)) return c.body(null, 304, headers)
    }
    const reading = feed.open({ viewer, ...query })
    try {
      const first = await reading.next(query.limit, c.req.raw.signal)
      if (c.req.method === 'HEAD') {
        reading.close()
        return c.body(null, 200, headers)
      }
      const onClose = () => {
        bodies.delete(body)
        checking.stop()
      }
      const body = new Body({ reading, viewer, query, alarms, log, onClose }, first)
      bodies.add(body)
      const checking = recheck(
        async () => checkSame(viewer, viewerFrom(await authenticate(c))),
        () => body.end(),
      )
      if (signal.aborted) body.end()
      return c.body(body.stream, 200, headers)
    } catch (thrown) {
      reading.close()
      throw thrown
    }
  }

  const app = new Hono()
  app.get('/_db_updates', async (c) => {
    const viewer = viewerFrom(await authenticate(c))
    return answer(c, viewer).catch((thrown: unknown) => {
      throw refusalFrom(thrown)
    })
  })
  app.all('/_db_updates', async (c) => {
    viewerFrom(await authenticate(c))
    return methodNotAllowed('GET')()
  })
  return app
}

/** Form of an account: the part of a database name before a slash. */
const ACCOUNT = /^[a-z][a-z0-9_$()+-]*$/

function viewerFrom(userCtx: UserCtx | undefined): Viewer {
  if (isAdmin(userCtx)) return { kind: 'admin' }
  if (userCtx?.name && ACCOUNT.test(userCtx.name)) return { kind: 'account', account: userCtx.name }
  throw refusalOf(userCtx)
}

/** Throws if the user may see other databases now: the client must start again. */
function checkSame(before: Viewer, now: Viewer): void {
  if (!isDeepStrictEqual(before, now)) throw new HttpError(403, 'forbidden', 'This user may see other databases now.')
}

function refusalFrom(thrown: unknown): unknown {
  const options = { cause: thrown }
  if (isCouchError(thrown, 'not_found')) {
    return new HttpError(404, 'not_found', 'Database does not exist.', options)
  }
  if (isCouchError(thrown, 'bad_request')) {
    return new HttpError(400, 'bad_request', "Malformed sequence supplied in 'since' parameter.", options)
  }
  return thrown
}

/** Covers all inputs of an answer. The viewer is one of them: an admin's ETag must not match for a user. */
const etagOf = (parts: readonly unknown[]): string =>
  `"${createHash('sha256').update(JSON.stringify(parts)).digest('base64url')}"`

/** Names without the prefix `W/`, which a compressing proxy adds. */
const namesIn = (ifNoneMatch = ''): string[] => ifNoneMatch.split(',').map((name) => name.trim().replace(/^W\//, ''))
