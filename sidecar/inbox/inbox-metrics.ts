import { counter, defineMetrics } from '../metrics/metric.ts'
import type { InboxCounts } from './counts.ts'

export const inboxMetrics = defineMetrics({
  title: 'The inbox',
  prefix: 'couchdb_sidecar_inbox_',
  metrics: {
    documents_total: counter('documents', 'Documents that were sent to the inbox.', 'inbox/inbox.ts', {
      outcome: 'taken, repeated (it was there already), refused, conflict (it changes an older revision)',
    }),
    turned_away_total: counter('requests', 'Requests that the inbox did not take.', 'inbox/counts.ts', {
      reason: 'rate (too many came), full (too many devices wait to be confirmed)',
    }),
  },
  read({ documents, turnedAway }: InboxCounts) {
    return {
      documents_total: Object.entries(documents).map(([outcome, count]) => [count, { outcome }] as const),
      turned_away_total: Object.entries(turnedAway).map(([reason, count]) => [count, { reason }] as const),
    }
  },
})
