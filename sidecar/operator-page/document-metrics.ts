import { STATUSES } from '../../ddocs/lib/status.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { DATABASE } from '../databases/database-metrics.ts'
import { patternOf } from '../databases/patterns.ts'
import { countsFor } from '../docstate/operator/find.ts'
import { defineMetrics, gauge } from '../metrics/metric.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import type { Counted } from './per-database.ts'

export interface DocumentSources {
  /** Returns counts no older than one or two scrapes. */
  readonly look: () => Promise<Counted>
  /** Names and globs in the settings. */
  readonly patterns: readonly string[]
  /** Types and states that this worker handles, in the databases of a name or glob. */
  readonly handledIn: (pattern: string) => readonly TypeAndState[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Reported statuses. Finished documents are left out: they may be millions, and need no action. */
const COUNTED = STATUSES.filter((status) => status !== 'handled' && status !== 'discarded')
const COUNTS = 'operator-page/per-database.ts'

export const documentMetrics = defineMetrics({
  title: 'Documents',
  labels: { database: DATABASE, type: 'type of the documents', state: 'state that a handler of this worker handles' },
  metrics: {
    documents: gauge(
      'documents',
      'Documents by status. All workers report the same numbers: take the maximum, not the sum.',
      COUNTS,
      { status: COUNTED.join(', ') },
    ),
    documents_oldest_seconds: gauge(
      'seconds',
      'Time since the oldest document with this status first failed or was parked; 0 without one. All workers report the same value: take the maximum.',
      COUNTS,
      { status: STUCK.join(', ') },
    ),
  },
  async read({ look, patterns, handledIn, now }: DocumentSources) {
    const { databases, isKnown } = await look()
    if (!isKnown) return { documents: [], documents_oldest_seconds: [] } // a partial count would be wrong
    const sums = new Map<string, { count: number; since: string }>()
    const keyOf = (database: string, { type, state }: TypeAndState, status: string) =>
      JSON.stringify([database, type, state, status])
    for (const { name, counted } of databases) {
      const pattern = patternOf(name, patterns)
      for (const count of counted ? countsFor(counted, { statuses: COUNTED }) : []) {
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
      documents: each(COUNTED, ({ count }) => count),
      documents_oldest_seconds: each(STUCK, ({ since }) => age(since)),
    }
  },
})

/** Sorts after any time. */
const LATEST = '~'
