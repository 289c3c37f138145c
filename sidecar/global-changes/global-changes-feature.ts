import { together } from '../core/together.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import type { Member } from '../workers/worker-documents.ts'
import { createNamePartition } from '../workers/name-partition.ts'
import { createDbUpdates } from './reading/db-updates.ts'
import { dbUpdatesMetrics } from './writing/global-changes-metrics.ts'
import { dbUpdatesRoute } from './serving/db-updates-route.ts'
import { partitionBuckets } from './writing/bucket-partition.ts'
import { globalChangesMetrics } from './writing/global-changes-metrics.ts'
import { createGlobalChanges } from './writing/global-changes.ts'

/** Writes database events into a database, and serves them as `GET /_db_updates`. */
export function globalChangesFeature(platform: Platform): Feature {
  const { config, couch, embedded, live, worker, authenticate, recheck, clock, log, signal } = platform
  const name = config.globalChangesDb
  const takesPart = writesEvents(name)
  const writing = createGlobalChanges({
    ...{ ...platform, couch: couch.work, name, mayHaveFeed: !embedded },
    settings: live.of('global_changes'),
    partition: partitionBuckets(createNamePartition({ ...worker, takesPart, signal }), signal),
  })
  live.onChange('global_changes', (settings) => writing.change(settings), signal)
  const feed = createDbUpdates({ ...platform, couch: couch.work, answering: couch.updates, name })
  const parts = [
    (until: AbortSignal) => feed.run(until),
    (until: AbortSignal) => live.whenKnown(until).then(() => writing.run(until)),
  ]
  return {
    run: (until) => together(parts, until),
    routes: [dbUpdatesRoute({ feed, authenticate, recheck, clock, log, signal })],
    metrics: [
      metricsOf(globalChangesMetrics, () => writing.counts()),
      metricsOf(dbUpdatesMetrics, () => feed.counts()),
    ],
    capabilities: { global_changes: name },
  }
}

/** Whether a worker writes database events into this database. */
export const writesEvents =
  (globalChangesDb: string) =>
  ({ options }: Member): boolean =>
    options.global_changes === globalChangesDb
