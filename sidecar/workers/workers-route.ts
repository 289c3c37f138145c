import { Hono, type MiddlewareHandler } from 'hono'
import { methodNotAllowed } from '../http/errors.ts'

/** Of one worker, as it is answered. */
export interface WorkerRow {
  readonly role: string
  readonly id: string
  readonly options: unknown
  readonly timeoutMs: number
  readonly registeredAt: string
  readonly seenAt: string | undefined
}

export interface WorkersOptions {
  readonly adminOnly: MiddlewareHandler
  readonly list: (signal: AbortSignal) => Promise<readonly WorkerRow[]>
}

/** `GET /_workers`, for server admins: who is there, in which role, with what it tells of itself. */
export function workersRoute({ adminOnly, list }: WorkersOptions): Hono {
  const app = new Hono()
  app.get('/_workers', adminOnly, async (c) => {
    const all = await list(c.req.raw.signal)
    return c.json({
      workers: all.map(({ role, id, options, timeoutMs, registeredAt, seenAt }) => ({
        role,
        id,
        options,
        timeout_ms: timeoutMs,
        registered_at: registeredAt,
        seen_at: seenAt ?? null,
      })),
    })
  })
  app.all('/_workers', methodNotAllowed('GET', 'HEAD'))
  return app
}
