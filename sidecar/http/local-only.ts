import type { MiddlewareHandler } from 'hono'
import { HttpError } from './errors.ts'

/**
 * Answers only where the caller has asked for this machine by one of its own names, at any port. A page of another site
 * reaches a server on 127.0.0.1 by a name of its own that it makes lead there (DNS rebinding), and its browser then
 * takes both for one origin; but it sends that name as `Host`.
 */
export const localOnly = (): MiddlewareHandler =>
  async function localOnly(c, next) {
    const host = c.req.header('host') ?? new URL(c.req.url).host
    if (!LOCAL.test(host)) throw new HttpError(403, 'forbidden', 'This is shown at localhost only.')
    await next()
  }

const LOCAL = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i
