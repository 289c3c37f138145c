import { counter, defineMetrics, gauge, one } from '../../metrics/metric.ts'
import type { DbUpdatesCounts } from '../reading/db-updates.ts'

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
