import { Hono } from 'hono'
import { accepts } from 'hono/accepts'
import { Registry, type Metric as Registered, type RegistryContentType } from 'prom-client'
import { Histogram } from '../core/histogram.ts'
import { adminOnly, type Authenticate } from '../http/authenticate.ts'
import { methodNotAllowed } from '../http/http-errors.ts'
import type { Metric, Metrics, Sample } from './metric.ts'

export interface MetricsOptions {
  readonly authenticate: Authenticate
  readonly metrics: readonly Metrics[]
}

/** Roles that may read CouchDB's own metrics, and CouchDB's refusal for all others. */
const READERS = {
  roles: ['_admin', '_metrics'],
  reason: 'You are not a server admin or read-only metrics user',
}

export type Format = 'prometheus' | 'openmetrics'

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

interface Exposition {
  readonly contentType: string
  readonly text: string
}

/**
 * Renders all metrics with their current values. Each scrape has its own registry: prom-client renames the counters of
 * a registry for OpenMetrics. Nothing is kept between two scrapes.
 */
export async function expose(groups: readonly Metrics[], format: Format): Promise<Exposition> {
  const { PROMETHEUS_CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE } = Registry
  const contentType = format === 'openmetrics' ? OPENMETRICS_CONTENT_TYPE : PROMETHEUS_CONTENT_TYPE
  const registry = new Registry<RegistryContentType>()
  registry.setContentType(contentType)
  for (const { prefix, metrics, read } of groups) {
    const readings = await read()
    for (const [name, metric] of Object.entries(metrics)) {
      registry.registerMetric(registered(prefix + name, metric, readings[name]!))
    }
  }
  return { contentType, text: await registry.metrics() }
}

/** Wraps numbers that a part keeps: prom-client's own metrics count by themselves. A registry needs no other fields. */
function registered(name: string, { type, meaning: help }: Metric, samples: readonly Sample[]): Registered {
  const values = samples.flatMap(([value, labels]) =>
    value instanceof Histogram ? valuesOf(name, value, labels) : [{ value, labels }],
  )
  const metric = { name, help, type, aggregator: 'sum', values, get: () => Promise.resolve(metric) }
  return metric as unknown as Registered
}

function valuesOf(name: string, histogram: Histogram, labels: Readonly<Record<string, string>>) {
  const ranges = histogram.upTo()
  return [
    ...ranges.map(({ ms, count }) => {
      return { metricName: `${name}_bucket`, labels: { ...labels, le: floatFrom(ms / 1000) }, value: count }
    }),
    { metricName: `${name}_sum`, labels, value: histogram.sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: ranges.at(-1)!.count },
  ]
}

/** Formats a limit as OpenMetrics requires, and for both formats: otherwise their ranges would differ. */
function floatFrom(seconds: number): string {
  if (seconds === Infinity) return '+Inf'
  return Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds)
}
