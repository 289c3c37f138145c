/**
 * HTTP errors in CouchDB's format: `{"error": …, "reason": …}` for programs, a page for people. Neither contains a
 * stack or the text of an unexpected error.
 */
import type { Context, ErrorHandler, NotFoundHandler } from 'hono'
import { accepts } from 'hono/accepts'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Logger } from 'pino'
import { SidecarError } from '../core/errors.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { pathForLog } from './app.ts'
import { errorPage } from './page.ts'

/** Thrown by a handler to refuse a request. `code` is CouchDB's `error`, the message its `reason`. */
export class HttpError extends SidecarError {
  override readonly name = 'HttpError'
  readonly status: ContentfulStatusCode
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: ContentfulStatusCode,
    code: string,
    reason: string,
    { headers = {}, ...options }: ErrorOptions & { headers?: Record<string, string> } = {},
  ) {
    super(code, reason, options)
    this.status = status
    this.headers = headers
  }
}

/** Refuses all other methods of a path, like CouchDB. */
export const methodNotAllowed =
  (...methods: string[]) =>
  (): never => {
    const headers = { Allow: methods.join(', ') }
    throw new HttpError(405, 'method_not_allowed', `Only ${methods.join(',')} allowed`, { headers })
  }

export const notFound: NotFoundHandler = (c) => answer(c, new HttpError(404, 'not_found', 'There is no such page.'))

export const handleError =
  (log: Logger): ErrorHandler =>
  (thrown, c) => {
    const error = httpErrorFrom(thrown)
    const hasLeft = c.req.raw.signal.aborted // then the work for this client fails as intended
    if (error.status >= 500 && !hasLeft) log.error({ err: thrown, path: pathForLog(c.req.path) }, 'request failed')
    return answer(c, error)
  }

const RETRY_AFTER_S = '5'

function httpErrorFrom(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown
  if (thrown instanceof CouchError && thrown.retry !== 'never') {
    const options = { cause: thrown, headers: { 'Retry-After': RETRY_AFTER_S } }
    return new HttpError(503, 'service_unavailable', 'The database cannot be reached. Try again in a moment.', options)
  }
  return new HttpError(500, 'internal_server_error', 'Internal error: see the log of the sidecar.', {
    cause: thrown,
  })
}

function answer(c: Context, { status, code, message, headers }: HttpError): Response | Promise<Response> {
  const type = accepts(c, {
    header: 'Accept',
    supports: ['application/json', 'text/html'],
    default: 'application/json',
  })
  if (type === 'text/html') return c.html(errorPage(status, message), status, headers)
  return c.json({ error: code, reason: message }, status, headers)
}
