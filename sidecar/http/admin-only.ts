import type { MiddlewareHandler } from 'hono'
import { hasRole, refusalOf, type CallerOf } from './caller.ts'

export interface AdminOnlyOptions {
  readonly callerOf: CallerOf
  /** One of them will do. Default: that of server admins. */
  readonly roles?: readonly string[]
  /** What those are told who have none of them. */
  readonly reason?: string
}

/** Lets in server admins only, or users with one of the roles. CouchDB says which user it is (`caller.ts`). */
export function adminOnly({ callerOf, roles = ['_admin'], reason }: AdminOnlyOptions): MiddlewareHandler {
  return async function adminOnly(c, next) {
    const caller = await callerOf(c)
    if (!hasRole(caller, roles)) throw refusalOf(caller, reason)
    await next()
  }
}
