import { Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Logger } from 'pino'
import { handleError, HttpError, notFound } from './http-errors.ts'
import { script, style } from './page.ts'
import { createHash } from 'node:crypto'
import { secureHeaders } from 'hono/secure-headers'

export interface HttpOptions {
  /** Routes with full paths; the first route that matches answers. */
  readonly routes: readonly Hono[]
  readonly log: Logger
}

const MAX_BODY = 16 * 1024

/**
 * Combines all routes in one application. Every request gets security headers, a limit on the body, errors in CouchDB's
 * format, and a log line.
 *
 * @example
 * const app = createHttp({ routes: [up({ health }), confirmPage({ confirmations, log })], log })
 * const { url } = await listen({ app, host: '127.0.0.1', port: 5985, signal })
 */
export function createHttp({ routes, log }: HttpOptions): Hono {
  const app = new Hono()
  app.onError(handleError(log))
  app.notFound(notFound)
  app.use(requestLog(log), securityHeaders([style], [script]), bodyLimit({ maxSize: MAX_BODY, onError: tooLarge }))
  for (const route of routes) app.route('/', route)
  return app
}

function tooLarge(): never {
  throw new HttpError(413, 'too_large', `A request may have ${MAX_BODY / 1024} KB at most.`)
}

/**
 * Sets security headers: pages load nothing and cannot be framed. A page is one HTML file with a style sheet and a
 * script, known by their hashes. Browsers send no referrer, and caches store nothing. The proxy that terminates TLS
 * sets Strict-Transport-Security. A header that a route sets itself stays.
 *
 * @param styles the style sheets that pages may hold
 * @param scripts the scripts that pages may hold
 */
function securityHeaders(styles: readonly string[], scripts: readonly string[]): MiddlewareHandler {
  const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const secure = secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: styles.map(hashOf),
      scriptSrc: scripts.map(hashOf),
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"],
    },
    xFrameOptions: 'DENY',
    referrerPolicy: 'no-referrer',
    strictTransportSecurity: false,
    overwrite: false,
  })
  return async function securityHeaders(c, next) {
    await secure(c, next)
    if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store')
  }
}

/**
 * Logs each request at `debug`: method, first part of the path, status, milliseconds. The rest of the path may hold the
 * code of a confirm link. The log omits this rest and the query.
 */
const requestLog = (log: Logger): MiddlewareHandler =>
  async function requestLog(c, next) {
    const startedAt = performance.now()
    await next()
    const ms = Math.round(performance.now() - startedAt)
    log.debug({ method: c.req.method, path: pathForLog(c.req.path), status: c.res.status, ms }, 'request')
  }

/** Shortens `/confirm/d1/c0de` to `/confirm/…`. */
export const pathForLog = (path: string): string =>
  path.replace(/^(\/[^/]{0,64})[^]*$/, (all, first: string) => (all === first ? first : `${first}/…`))
