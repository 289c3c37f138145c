import type { MiddlewareHandler } from 'hono'
import { HttpError } from './errors.ts'

/**
 * Refuses what a page of another site makes a browser send. Browsers say so in `Sec-Fetch-Site`, and those that do
 * not (over plain HTTP) in `Origin`. There the host is compared, not the scheme, which a proxy in front may have
 * changed; and `null` is let through, since that is what a browser says of a form on a page with `no-referrer`, as
 * ours are. Programs send neither.
 */
export const sameOrigin = (): MiddlewareHandler =>
  async function sameOrigin(c, next) {
    if (!['GET', 'HEAD'].includes(c.req.method)) {
      const site = c.req.header('sec-fetch-site')
      const origin = c.req.header('origin')
      const allowed = site === undefined ? isSameHost(origin, c.req.header('host')) : SITES.includes(site)
      if (!allowed) throw new HttpError(403, 'forbidden', 'This request came from another site.')
    }
    await next()
  }

const SITES = ['same-origin', 'none']

const isSameHost = (origin: string | undefined, host: string | undefined): boolean =>
  origin === undefined || origin === 'null' || (URL.canParse(origin) && new URL(origin).host === host)
