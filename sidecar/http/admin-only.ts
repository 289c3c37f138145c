import type { MiddlewareHandler } from 'hono'
import { createCallers, isAdmin, refusalOf, type CallersOptions } from './caller.ts'

/** Lets in server admins only. Who somebody is, CouchDB says (`caller.ts`). */
export function adminOnly(options: CallersOptions): MiddlewareHandler {
  const callerOf = createCallers(options)
  return async function adminOnly(c, next) {
    const caller = await callerOf(c)
    if (!isAdmin(caller)) throw refusalOf(caller)
    await next()
  }
}
