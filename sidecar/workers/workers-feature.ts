import { Hono, type MiddlewareHandler } from 'hono'
import type { Couch } from '../couch/client.ts'
import type { Database } from '../couch/database.ts'
import type { Feature } from '../feature.ts'
import { defineMetrics, gauge, metricsOf, one } from '../metrics/metric.ts'
import { ROLE } from './worker-documents.ts'
import { listWorkers } from './list-workers.ts'
import type { Registry } from './registry.ts'
import { methodNotAllowed } from '../http/http-errors.ts'

export interface WorkersFeatureOptions {
  readonly worker: { readonly registry: Registry }
  readonly couch: { readonly answers: Couch }
  readonly config: { readonly controlDb: string }
  readonly adminOnly: MiddlewareHandler
}

/** `GET /_workers`. */
export function workersFeature({ worker, couch, config, adminOnly }: WorkersFeatureOptions): Feature {
  const control = couch.answers.db(config.controlDb)
  return {
    routes: [workersRoute(control, adminOnly)],
    metrics: [metricsOf(workerMetrics, () => worker.registry.members(ROLE)?.members.length)],
  }
}

export const workerMetrics = defineMetrics({
  title: 'Workers',
  metrics: {
    workers: gauge(
      'workers',
      'Sidecars that share the control database. No value while the number is unknown.',
      'workers/role.ts',
    ),
  },
  read: (count: () => number | undefined) => ({ workers: one(count()) }),
})

/** `GET /_workers`, for server admins: all registered workers, with their roles and options. */
function workersRoute(control: Database, adminOnly: MiddlewareHandler): Hono {
  const app = new Hono()
  app.get('/_workers', adminOnly, async (c) => {
    const all = await listWorkers(control, c.req.raw.signal)
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
