import { counter, defineMetrics, gauge, one } from '../metrics/metric.ts'
import type { ReaderCounts } from './channel-feed.ts'

const READERS = 'events/channel-feed.ts'

export const eventMetrics = defineMetrics({
  title: 'GET /_events',
  prefix: 'couchdb_sidecar_event_',
  metrics: {
    readers: gauge('readers', 'Readers of event channels over HTTP.', READERS),
    readers_dropped_total: counter(
      'readers',
      'Readers of event channels that were cut off because they were slow.',
      READERS,
    ),
  },
  read: ({ open, dropped }: ReaderCounts) => ({ readers: one(open), readers_dropped_total: one(dropped) }),
})
