import type { Clock } from '../core/clock.ts'
import { byTrouble, isInTrouble, rowOf } from './rows.ts'
import { counter, defineMetrics, gauge, histogram, one } from '../metrics/metric.ts'
import type { Indexes } from './indexes.ts'

const BOOK = 'indexes/book.ts'
const BUILDER = 'indexes/builder.ts'
const BUILDS = 'indexes/builds.ts'

/** Labels of one index. Only the worst indexes get them, to limit the number of series. */
const LABELS = {
  database: 'database of the index',
  ddoc: 'id of the design document',
  index: 'name of the index, empty for the common index of all views',
}
const MOST = 100

export const indexMetrics = defineMetrics({
  title: 'Indexes',
  prefix: 'couchdb_sidecar_indexes_',
  metrics: {
    fresh: gauge('indexes', 'Indexes that contain all known changes of their database.', BOOK),
    behind: gauge('indexes', 'Stale indexes: they may lack known changes of their database.', BOOK),
    failing: gauge('indexes', 'Stale indexes whose last build failed. GET /_indexes says which and why.', BOOK),
    worst_lag_seconds: gauge(
      'seconds',
      'Longest time for which an index has been stale; 0 if no index is stale.',
      BOOK,
    ),
    lag_changes: gauge(
      'changes',
      'Changes that the index lacked at its last check. Only for indexes that fail or have been stale for 10 seconds, at most 100: failing indexes first, then the longest stale.',
      BOOK,
      LABELS,
    ),
    lag_seconds: gauge(
      'seconds',
      'Time for which the index has been stale. For the same indexes as couchdb_sidecar_indexes_lag_changes.',
      BOOK,
      LABELS,
    ),
    freshness_seconds: histogram(
      'seconds',
      'Time from the first missing change until the index contained it, once for each build.',
      BUILDS,
    ),
    building: gauge('builds', 'Builds in progress.', BUILDS),
    queued: gauge('databases', 'Databases that wait for a check of their indexes.', BUILDER),
    resubmitted: gauge(
      'databases',
      'Databases whose next check is delayed, for example after a failed build.',
      BUILDER,
    ),
    built_total: counter('builds', 'Builds that brought an index up to date.', BUILDS),
    failures_total: counter('builds', 'Builds that failed.', BUILDS),
    requests_total: counter('requests', 'Requests to CouchDB that check and build indexes.', 'indexes/pace.ts'),
    sweep_found_total: counter('databases', 'Databases that a sweep found to be new or changed.', 'indexes/indexes.ts'),
    pace_ratio: gauge(
      'none',
      'Fraction of the build channels (concurrent builds) that may be used, from 1/64 to 1. Less than 1 while CouchDB is slow.',
      'indexes/pace.ts',
    ),
    paused: gauge(
      'none',
      '1 while no index is built because the disk of CouchDB has too little free space (live setting min_free_disk), 0 otherwise.',
      'indexes/pace.ts',
    ),
  },
  read({ indexes, clock }: { readonly indexes: Pick<Indexes, 'counts' | 'entries'>; readonly clock: Clock }) {
    const [counts, now] = [indexes.counts(), clock.now()]
    const behind = [...indexes.entries()].filter(({ isFresh }) => !isFresh).map((entry) => rowOf(entry, now))
    const worst = behind.filter(isInTrouble).sort(byTrouble).slice(0, MOST)
    const labelsOf = ({ db_name, ddoc, index }: (typeof worst)[number]) => ({
      database: db_name,
      ddoc,
      index: index ?? '',
    })
    return {
      ...{ fresh: one(counts.fresh), behind: one(counts.behind), failing: one(counts.failing) },
      worst_lag_seconds: one(counts.worstLagMs / 1000),
      lag_changes: worst.flatMap((row) =>
        row.lag_changes === null ? [] : [[row.lag_changes, labelsOf(row)] as const],
      ),
      lag_seconds: worst.map((row) => [row.lag_seconds, labelsOf(row)] as const),
      freshness_seconds: [[counts.lags, {}] as const],
      ...{ building: one(counts.building), queued: one(counts.queued), resubmitted: one(counts.resubmitted) },
      ...{ built_total: one(counts.built), failures_total: one(counts.failures), requests_total: one(counts.requests) },
      ...{ sweep_found_total: one(counts.swept), pace_ratio: one(counts.pace) },
      paused: one(counts.paused === undefined ? 0 : 1),
    }
  },
})
