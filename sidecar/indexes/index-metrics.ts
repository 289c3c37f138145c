import type { Clock } from '../core/clock.ts'
import { byTrouble, isInTrouble, rowOf } from './rows.ts'
import { counter, defineMetrics, gauge, histogram, one } from '../metrics/metric.ts'
import type { Indexes } from './indexes.ts'

const BOOK = 'indexes/book.ts'
const BUILDER = 'indexes/builder.ts'
const BUILDS = 'indexes/builds.ts'

/** Of an index each: of those in trouble the worst, so that there are never too many. */
const LABELS = { database: 'of the index', ddoc: 'its design document', index: 'its name; empty for that of all views' }
const MOST = 100

export const indexMetrics = defineMetrics({
  title: 'Indexes',
  prefix: 'couchdb_sidecar_indexes_',
  metrics: {
    fresh: gauge('indexes', 'Indexes that have all that is known to have changed in their database.', BOOK),
    behind: gauge('indexes', 'Indexes that have not.', BOOK),
    failing: gauge('indexes', 'Those of them that could not be built the last time.', BOOK),
    worst_lag_seconds: gauge(
      'seconds',
      'For how long the one has been behind that is longest behind; 0 if none.',
      BOOK,
    ),
    lag_changes: gauge(
      'changes',
      'How far an index is behind: of those that fail or are ten seconds behind, the worst hundred.',
      BOOK,
      LABELS,
    ),
    lag_seconds: gauge('seconds', 'For how long it is behind; the same indexes.', BOOK, LABELS),
    freshness_seconds: histogram(
      'seconds',
      'From the first change that an index lacked until it had it; of each build.',
      BUILDS,
    ),
    building: gauge('builds', 'Builds that run.', BUILDS),
    queued: gauge('databases', 'Databases that wait to be looked at.', BUILDER),
    resubmitted: gauge('databases', 'Databases that are to be looked at later.', BUILDER),
    built_total: counter('builds', 'Builds that reached their end.', BUILDS),
    failures_total: counter('builds', 'Builds that failed.', BUILDS),
    requests_total: counter('requests', 'Requests made to look at indexes and to build them.', 'indexes/pace.ts'),
    sweep_found_total: counter(
      'databases',
      'Databases that a sweep found further than they were known to be.',
      'indexes/sweep.ts',
    ),
    pace_ratio: gauge('none', 'Part of the channels in use: less than 1 where the server is slow.', 'indexes/pace.ts'),
    paused: gauge('none', '1 while nothing is built because a disk is full, 0 if not.', 'indexes/pace.ts'),
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
