import { STATUSES } from '../../ddocs/lib/status.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { DATABASE } from '../databases/database-metrics.ts'
import { patternOf } from '../databases/patterns.ts'
import { countsFor } from '../docstate/operator/find.ts'
import { defineMetrics, gauge } from '../metrics/metric.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import type { Counted } from './per-database.ts'

export interface DocumentSources {
  /** What is counted, none of it older than a scrape or two. */
  readonly look: () => Promise<Counted>
  /** Names and globs of the settings. */
  readonly patterns: readonly string[]
  /** Those that this worker has a handler for, in the databases of a name or glob. */
  readonly handledIn: (pattern: string) => readonly TypeAndState[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Those that are done with are not told: they may be millions, and nothing is to be done about them. */
const TOLD = STATUSES.filter((status) => status !== 'handled' && status !== 'discarded')
const COUNTS = 'operator-page/per-database.ts'

export const documentMetrics = defineMetrics({
  title: 'Documents',
  labels: { database: DATABASE, type: 'of the documents', state: 'in which a handler of this worker takes them' },
  metrics: {
    documents: gauge(
      'documents',
      'Documents by how they stand, on all workers the same: not to be added up. Counted when metrics are read, where something has changed.',
      COUNTS,
      { status: TOLD.join(', ') },
    ),
    documents_oldest_seconds: gauge(
      'seconds',
      'For how long the oldest of those that are stuck is so; 0 if there is none. On all workers the same.',
      COUNTS,
      { status: STUCK.join(', ') },
    ),
  },
  async read({ look, patterns, handledIn, now }: DocumentSources) {
    const { databases, isKnown } = await look()
    if (!isKnown) return { documents: [], documents_oldest_seconds: [] } // a part of them would be a wrong number
    const sums = new Map<string, { count: number; since: string }>()
    const keyOf = (database: string, { type, state }: TypeAndState, status: string) =>
      JSON.stringify([database, type, state, status])
    for (const { name, counted } of databases) {
      const pattern = patternOf(name, patterns)
      for (const count of counted ? countsFor(counted, { statuses: TOLD }) : []) {
        const key = keyOf(pattern, count, count.status)
        const before = sums.get(key)
        const since = ('since' in count && count.since) || LATEST
        sums.set(key, {
          count: (before?.count ?? 0) + count.count,
          since: before && before.since < since ? before.since : since,
        })
      }
    }
    const labels = patterns.flatMap((database) => handledIn(database).map((pair) => ({ database, ...pair })))
    const each = (statuses: readonly string[], valueOf: (sum: { count: number; since: string }) => number) =>
      labels.flatMap(({ database, type, state }) =>
        statuses.map((status) => {
          const sum = sums.get(keyOf(database, { type, state }, status))
          return [sum ? valueOf(sum) : 0, { database, type, state, status }] as const
        }),
      )
    const age = (since: string) => (since === LATEST ? 0 : Math.max(0, now() - Date.parse(since)) / 1000)
    return {
      documents: each(TOLD, ({ count }) => count),
      documents_oldest_seconds: each(STUCK, ({ since }) => age(since)),
    }
  },
})

/** Later than any time. */
const LATEST = '~'
