import type { MiddlewareHandler } from 'hono'
import { hasRole, refusalOf, type Authenticate } from './authenticate.ts'

export interface AdminOnlyOptions {
  readonly authenticate: Authenticate
  /** One of them will do. Default: that of server admins. */
  readonly roles?: readonly string[]
  /** What those are told who have none of them. */
  readonly reason?: string
}

/** Lets in server admins only, or users with one of the roles. CouchDB says which user it is (`authenticate.ts`). */
export function adminOnly({ authenticate, roles = ['_admin'], reason }: AdminOnlyOptions): MiddlewareHandler {
  return async function adminOnly(c, next) {
    const userCtx = await authenticate(c)
    if (!hasRole(userCtx, roles)) throw refusalOf(userCtx, reason)
    await next()
  }
}
