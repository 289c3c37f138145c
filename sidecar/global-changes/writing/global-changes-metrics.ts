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
    on: gauge('none', '1 if database events are gathered and written, 0 if not.', ALL),
    db_writes_total: counter('documents', 'Event documents written.', WRITER),
    server_pending_updates: gauge(
      'documents',
      'Event documents that wait for the next write, or for one to succeed.',
      ALL,
    ),
    listener_pending_updates: gauge('events', 'Events that are gathered before they go to the writer.', WINDOWS),
    event_doc_conflict_total: counter('branches', 'Branches found in event documents: there should be none.', WRITER),
    rpcs_total: counter(
      'requests',
      'Requests made to write event documents, those that read revisions included.',
      WRITER,
    ),
    sweep_found_total: counter('databases', 'Databases of which a sweep found something that no feed had told.', ALL),
    lag_seconds: gauge(
      'seconds',
      'For how long the oldest event has waited that is known and not written; 0 if none.',
      ALL,
    ),
    sweep_age_seconds: gauge(
      'seconds',
      'Time since the last sweep began that came to its end; what happened before it is known.',
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
    readers: gauge('readers', 'Readers of /_db_updates that are open.', READING),
    rows_total: counter('rows', 'Rows that have come over the one feed that all readers live by.', READING),
    pages_total: counter('requests', 'Pages read for readers that were not at the end.', READING),
    slow_total: counter('times', 'How often a reader did not take what came, and had to read it again.', READING),
  },
  read(counts: () => DbUpdatesCounts) {
    const { readers, rows, pages, slow } = counts()
    return { readers: one(readers), rows_total: one(rows), pages_total: one(pages), slow_total: one(slow) }
  },
})
