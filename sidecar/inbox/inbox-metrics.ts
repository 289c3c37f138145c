import { counter, defineMetrics } from '../metrics/metric.ts'

export const inboxMetrics = defineMetrics({
  title: 'The inbox',
  prefix: 'couchdb_sidecar_inbox_',
  metrics: {
    documents_total: counter('documents', 'Documents sent to the inbox, by outcome.', 'inbox/inbox.ts', {
      outcome: 'taken (stored), repeated (already stored), refused (not valid), conflict (based on an older revision)',
    }),
    turned_away_total: counter(
      'requests',
      'Requests (rate) and documents (full) that the inbox turned away. The client must send them again later.',
      'inbox/inbox-metrics.ts',
      {
        reason: 'rate (too many documents from one address), full (too many devices wait for confirmation)',
      },
    ),
  },
  read({ documents, turnedAway }: InboxCounts) {
    return {
      documents_total: Object.entries(documents).map(([outcome, count]) => [count, { outcome }] as const),
      turned_away_total: Object.entries(turnedAway).map(([reason, count]) => [count, { reason }] as const),
    }
  },
})

/** Counters of the inbox: the outcomes of sent documents. */
export interface InboxCounts {
  readonly documents: Record<'taken' | 'repeated' | 'refused' | 'conflict', number>
  /** Requests that the client must repeat later: too many came, or too many devices wait. */
  readonly turnedAway: Record<'rate' | 'full', number>
}

export const noArrivals = (): InboxCounts => ({
  documents: { taken: 0, repeated: 0, refused: 0, conflict: 0 },
  turnedAway: { rate: 0, full: 0 },
})
