import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Logger } from 'pino'
import { handleError, HttpError, notFound } from './errors.ts'
import { style } from './page.ts'
import { requestLog } from './request-log.ts'
import { securityHeaders } from './security-headers.ts'

export interface HttpOptions {
  /** Each with its full paths; the first that has a path answers it. */
  readonly routes: readonly Hono[]
  readonly log: Logger
}

const MAX_BODY = 16 * 1024

/**
 * All of the sidecar's HTTP in one application, with what holds for every request: security headers, a limit on the
 * body, errors in CouchDB's words, a line in the log.
 *
 * @example
 * const app = createHttp({ routes: [up({ health }), confirmPage({ confirmations, log })], log })
 * const { url } = await listen({ app, host: '127.0.0.1', port: 5985, signal })
 */
export function createHttp({ routes, log }: HttpOptions): Hono {
  const app = new Hono()
  app.onError(handleError(log))
  app.notFound(notFound)
  app.use(requestLog(log), securityHeaders([style]), bodyLimit({ maxSize: MAX_BODY, onError: tooLarge }))
  for (const route of routes) app.route('/', route)
  return app
}

function tooLarge(): never {
  throw new HttpError(413, 'too_large', `A request may have ${MAX_BODY / 1024} KB at most.`)
}
