import { counter, defineMetrics } from '../metrics/metric.ts'

export const inboxMetrics = defineMetrics({
  title: 'The inbox',
  prefix: 'couchdb_sidecar_inbox_',
  metrics: {
    documents_total: counter('documents', 'Documents that were sent to the inbox.', 'inbox/inbox.ts', {
      outcome: 'taken, repeated (it was there already), refused, conflict (it changes an older revision)',
    }),
    turned_away_total: counter('requests', 'Requests that the inbox did not take.', 'inbox/inbox-metrics.ts', {
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

/** What came of the documents that were sent, as plain numbers. */
export interface InboxCounts {
  readonly documents: Record<'taken' | 'repeated' | 'refused' | 'conflict', number>
  /** Requests that have to come again later: too many came, or too many devices wait. */
  readonly turnedAway: Record<'rate' | 'full', number>
}

export const noArrivals = (): InboxCounts => ({
  documents: { taken: 0, repeated: 0, refused: 0, conflict: 0 },
  turnedAway: { rate: 0, full: 0 },
})
