import type { MiddlewareHandler } from 'hono'
import type { Logger } from 'pino'

/**
 * Logs each request at `debug`: method, the first part of its path, status, milliseconds. What follows in a path can
 * be the code of a confirm link, so it is left out, as is the query.
 */
export const requestLog = (log: Logger): MiddlewareHandler =>
  async function requestLog(c, next) {
    const startedAt = performance.now()
    await next()
    const ms = Math.round(performance.now() - startedAt)
    log.debug({ method: c.req.method, path: pathForLog(c.req.path), status: c.res.status, ms }, 'request')
  }

/** `/confirm/…` for `/confirm/d1/c0de`. */
export const pathForLog = (path: string): string =>
  path.replace(/^(\/[^/]{0,64})[^]*$/, (all, first: string) => (all === first ? first : `${first}/…`))
