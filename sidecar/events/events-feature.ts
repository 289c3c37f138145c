import type { MiddlewareHandler } from 'hono'
import type { Clock } from '../core/clock.ts'
import type { Feature } from '../feature.ts'
import type { Recheck } from '../http/recheck.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Events } from './channels.ts'
import { eventFeeds } from './event-feeds.ts'
import { eventMetrics } from './event-metrics.ts'

export interface EventsFeatureOptions {
  readonly events: Events
  readonly adminOnly: MiddlewareHandler
  readonly recheck: Recheck
  readonly clock: Clock
  /** Ends all readers when it aborts. */
  readonly signal: AbortSignal
}

/** `GET /_events/{channel}`. */
export function eventsFeature(options: EventsFeatureOptions): Feature {
  const counts = { open: 0, dropped: 0 }
  return { routes: [eventFeeds({ ...options, counts })], metrics: [metricsOf(eventMetrics, counts)] }
}
