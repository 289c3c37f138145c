import { Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Logger } from 'pino'
import { handleError, HttpError, notFound } from './http-errors.ts'
import { script, style } from './page.ts'
import { createHash } from 'node:crypto'
import { secureHeaders } from 'hono/secure-headers'

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
  app.use(requestLog(log), securityHeaders([style], [script]), bodyLimit({ maxSize: MAX_BODY, onError: tooLarge }))
  for (const route of routes) app.route('/', route)
  return app
}

function tooLarge(): never {
  throw new HttpError(413, 'too_large', `A request may have ${MAX_BODY / 1024} KB at most.`)
}

/**
 * Nothing may be loaded or framed: a page of the sidecar is its own HTML, and one style sheet and one script in it, known by
 * their hashes. No address is passed on, nothing is stored on the way. Strict-Transport-Security is left to the proxy that
 * terminates TLS in front. A route whose pages need something else sets its own header, which stays.
 *
 * @param styles the style sheets that pages may hold
 * @param scripts the scripts
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
 * Logs each request at `debug`: method, the first part of its path, status, milliseconds. What follows in a path can
 * be the code of a confirm link, so it is left out, as is the query.
 */
const requestLog = (log: Logger): MiddlewareHandler =>
  async function requestLog(c, next) {
    const startedAt = performance.now()
    await next()
    const ms = Math.round(performance.now() - startedAt)
    log.debug({ method: c.req.method, path: pathForLog(c.req.path), status: c.res.status, ms }, 'request')
  }

/** `/confirm/…` for `/confirm/d1/c0de`. */
export const pathForLog = (path: string): string =>
  path.replace(/^(\/[^/]{0,64})[^]*$/, (all, first: string) => (all === first ? first : `${first}/…`))
