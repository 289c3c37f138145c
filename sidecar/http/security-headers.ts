import { createHash } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { secureHeaders } from 'hono/secure-headers'

/**
 * Nothing may be loaded, run or framed: a page of the sidecar is its own HTML and one style sheet in it, known by its
 * hash. No address is passed on, nothing is stored on the way. Strict-Transport-Security is left to whoever
 * terminates TLS in front. A route whose pages need something else sets its own header, which stays.
 *
 * @param styles the style sheets that pages may hold
 */
export function securityHeaders(styles: readonly string[]): MiddlewareHandler {
  const hashes = styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`)
  const secure = secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: hashes,
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
