import { counter, defineGroup, gauge, one } from '../metric.ts'

const VISITED = 'databases/visited-databases.ts'

export const ofVisitedDatabases = defineGroup({
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
  read({ visited }) {
    const { databases, open, waiting, visits, reads, swept } = visited()
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
