import { counter, defineGroup, gauge, one } from '../metric.ts'

const FLEET = 'databases/fleet.ts'

export const ofFleet = defineGroup({
  title: 'Databases that globs stand for',
  prefix: 'couchdb_sidecar_fleet_',
  metrics: {
    databases: gauge('databases', 'Databases that this worker looks after.', FLEET),
    open: gauge('visits', 'Visits under way.', FLEET),
    waiting: gauge('databases', 'Databases that wait for a visit.', FLEET),
    visits_total: counter('visits', 'Visits that have ended.', FLEET),
    reads_total: counter('requests', 'Requests for changes.', FLEET),
    sweep_found_total: counter('databases', 'Databases that a sweep found further than they were known to be.', FLEET),
  },
  read({ fleet }) {
    const { databases, open, waiting, visits, reads, swept } = fleet()
    return {
      databases: one(databases),
      open: one(open),
      waiting: one(waiting),
      visits_total: one(visits),
      reads_total: one(reads),
      sweep_found_total: one(swept),
    }
  },
})
