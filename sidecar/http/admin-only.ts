import type { MiddlewareHandler } from 'hono'
import { createCallers, hasRole, refusalOf, type CallersOptions } from './caller.ts'

export interface AdminOnlyOptions extends CallersOptions {
  /** One of them will do. Default: that of server admins. */
  readonly roles?: readonly string[]
  /** What those are told who have none of them. */
  readonly reason?: string
}

/** Lets in server admins only, or whoever has one of the roles. Who somebody is, CouchDB says (`caller.ts`). */
export function adminOnly({ roles = ['_admin'], reason, ...options }: AdminOnlyOptions): MiddlewareHandler {
  const callerOf = createCallers(options)
  return async function adminOnly(c, next) {
    const caller = await callerOf(c)
    if (!hasRole(caller, roles)) throw refusalOf(caller, reason)
    await next()
  }
}
