import { counter, defineMetrics, gauge, one } from '../metrics/metric.ts'
import type { VisitCounts } from './visited-databases.ts'

const VISITED = 'databases/visited-databases.ts'

export const visitMetrics = defineMetrics({
  title: 'Databases that globs stand for',
  metrics: {
    visited_databases: gauge('databases', 'Databases that this worker looks after.', VISITED),
    visits_open: gauge('visits', 'Visits under way.', VISITED),
    visits_waiting: gauge('databases', 'Databases that wait for a visit.', VISITED),
    visits_total: counter('visits', 'Visits that have ended.', VISITED),
    visit_reads_total: counter('requests', 'Requests for changes.', VISITED),
    visits_found_total: counter(
      'databases',
      'Databases that a sweep found further than they were known to be.',
      VISITED,
    ),
  },
  read(counts: () => VisitCounts) {
    const { databases, open, waiting, visits, reads, swept } = counts()
    return {
      visited_databases: one(databases),
      visits_open: one(open),
      visits_waiting: one(waiting),
      visits_total: one(visits),
      visit_reads_total: one(reads),
      visits_found_total: one(swept),
    }
  },
})
