import { Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { expose, type Format } from './exposition.ts'
import type { Metrics } from './metric.ts'
import { adminOnly } from '../http/authenticate.ts'
import type { Authenticate } from '../http/authenticate.ts'
import { methodNotAllowed } from '../http/http-errors.ts'

export interface MetricsOptions {
  readonly authenticate: Authenticate
  readonly metrics: readonly Metrics[]
}

/** Roles that may read CouchDB's own metrics, and CouchDB's refusal for all others. */
const READERS = {
  roles: ['_admin', '_metrics'],
  reason: 'You are not a server admin or read-only metrics user',
}

const FORMATS: Readonly<Record<string, Format>> = {
  'text/plain': 'prometheus',
  'application/openmetrics-text': 'openmetrics',
}

/**
 * Serves `GET /metrics` to server admins and users with CouchDB's role `_metrics`. The format is the text format of
 * Prometheus, or OpenMetrics if the client prefers it.
 */
export function metricsRoute({ authenticate, metrics }: MetricsOptions): Hono {
  const app = new Hono()
  app.get('/metrics', adminOnly({ authenticate, ...READERS }), async (c) => {
    const type = accepts(c, { header: 'Accept', supports: Object.keys(FORMATS), default: 'text/plain' })
    const { contentType, text } = await expose(metrics, FORMATS[type]!)
    return c.body(text, 200, { 'Content-Type': contentType, Vary: 'Accept' })
  })
  app.all('/metrics', methodNotAllowed('GET', 'HEAD'))
  return app
}
