import { counter, defineMetrics, gauge, one } from '../../metrics/metric.ts'
import type { GlobalChangesCounts } from './global-changes.ts'
import type { DbUpdatesCounts } from '../reading/db-updates.ts'

const WRITER = 'global-changes/writing/event-writer.ts'
const WINDOWS = 'global-changes/writing/gather.ts'
const ALL = 'global-changes/writing/global-changes.ts'

export const globalChangesMetrics = defineMetrics({
  title: 'Database events',
  prefix: 'couchdb_sidecar_global_changes_',
  metrics: {
    on: gauge(
      'none',
      '1 while database events are gathered and written, 0 while the live setting update_db is false.',
      ALL,
    ),
    db_writes_total: counter('documents', 'Event documents written.', WRITER),
    server_pending_updates: gauge('documents', 'Event documents that wait for the next write, or for a retry.', ALL),
    listener_pending_updates: gauge(
      'events',
      'Events that are still gathered (live setting max_event_delay), before they go to the writer.',
      WINDOWS,
    ),
    event_doc_conflict_total: counter(
      'revisions',
      'Conflicting revisions found in event documents. Expected: 0.',
      WRITER,
    ),
    rpcs_total: counter('requests', 'Requests to CouchDB that write event documents or read their revisions.', WRITER),
    sweep_found_total: counter(
      'databases',
      'Databases with an event that only a sweep found: no feed had reported it.',
      ALL,
    ),
    lag_seconds: gauge(
      'seconds',
      'Time for which the oldest known event has waited to be written; 0 if all are written.',
      ALL,
    ),
    sweep_age_seconds: gauge(
      'seconds',
      'Time since the start of the last completed sweep; 0 while events are off. All events before that start are known.',
      ALL,
    ),
  },
  read(counts: () => GlobalChangesCounts) {
    const { on, written, pendingWrites, pendingEvents, conflicts, requests, swept, lagMs, sweptMsAgo } = counts()
    return {
      on: one(Number(on)),
      db_writes_total: one(written),
      server_pending_updates: one(pendingWrites),
      listener_pending_updates: one(pendingEvents),
      event_doc_conflict_total: one(conflicts),
      rpcs_total: one(requests),
      sweep_found_total: one(swept),
      lag_seconds: one(lagMs / 1000),
      sweep_age_seconds: one(sweptMsAgo / 1000),
    }
  },
})

const READING = 'global-changes/reading/db-updates.ts'

export const dbUpdatesMetrics = defineMetrics({
  title: 'GET /_db_updates',
  prefix: 'couchdb_sidecar_db_updates_',
  metrics: {
    readers: gauge('readers', 'Open readers of /_db_updates.', READING),
    rows_total: counter('rows', 'Rows received from the feed that all readers share.', READING),
    pages_total: counter(
      'requests',
      'Requests that read older rows for readers that were not at the end of the feed.',
      READING,
    ),
    slow_total: counter(
      'times',
      'Times that a reader was too slow for the shared feed, so that its rows were read again.',
      READING,
    ),
  },
  read(counts: () => DbUpdatesCounts) {
    const { readers, rows, pages, slow } = counts()
    return { readers: one(readers), rows_total: one(rows), pages_total: one(pages), slow_total: one(slow) }
  },
})
