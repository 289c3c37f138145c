import type { MiddlewareHandler } from 'hono'
import type { Couch } from '../couch/client.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import { ROLE } from './documents.ts'
import { listWorkers } from './list.ts'
import type { Registry } from './registry.ts'
import { workerMetrics } from './worker-metrics.ts'
import { workersRoute } from './workers-route.ts'

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
    routes: [workersRoute({ adminOnly, list: (signal) => listWorkers(control, signal) })],
    metrics: [metricsOf(workerMetrics, () => worker.registry.members(ROLE)?.members.length)],
  }
}
