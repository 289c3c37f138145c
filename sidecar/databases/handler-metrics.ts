import type { HandlerCounters } from '../docstate/counters.ts'
import { counter, defineMetrics, gauge, histogram } from '../metrics/metric.ts'
import { DATABASE, type DatabaseSources } from './database-metrics.ts'

const RUN_ATTEMPT = 'docstate/run-attempt.ts'

export const handlerMetrics = defineMetrics({
  title: 'Handlers',
  labels: { database: DATABASE, type: 'of the documents', state: 'in which it takes them' },
  metrics: {
    handler_runs_total: counter('runs', 'Runs that have ended.', RUN_ATTEMPT, {
      outcome: 'next, nothing, failed, rejected, claim-lost, stopped',
    }),
    handler_duration_seconds: histogram('seconds', 'How long the runs took, saving not included.', RUN_ATTEMPT),
    handler_running: gauge('runs', 'Runs under way.', RUN_ATTEMPT),
    handler_waiting: gauge(
      'documents',
      'Documents in memory that wait for their claim, their turn or their save.',
      RUN_ATTEMPT,
    ),
    handler_written_total: counter(
      'documents',
      'What was written down of runs and lost workers.',
      'docstate/telemetry.ts',
      {
        as: 'saved, retry (failed, and tried again), error (failed for good), parked (a person decides)',
      },
    ),
    claims_total: counter('claims', 'Claims of unsafe documents.', RUN_ATTEMPT, {
      outcome: 'won, lost, unproven (by less than the quorum of a cluster), refused',
    }),
    claims_inherited_total: counter(
      'documents',
      'Documents taken over from workers that did not renew their claims.',
      'docstate/rescue.ts',
    ),
  },
  read({ databaseCounters }: Pick<DatabaseSources, 'databaseCounters'>) {
    const all = [...databaseCounters].flatMap(([database, counts]) =>
      [...counts.handlers()].map(({ counts, type, state }) => ({ counts, labels: { database, type, state } })),
    )
    const each = <V>(valueOf: (counts: HandlerCounters) => V) =>
      all.map(({ counts, labels }) => [valueOf(counts), labels] as const)
    const by = <L extends string>(label: L, numbersOf: (counts: HandlerCounters) => Readonly<Record<string, number>>) =>
      all.flatMap(({ counts, labels }) =>
        Object.entries(numbersOf(counts)).map(([value, number]) => {
          return [number, { ...labels, [label]: value } as typeof labels & Record<L, string>] as const
        }),
      )
    return {
      handler_runs_total: by('outcome', ({ runs }) => runs),
      handler_duration_seconds: each(({ took }) => took),
      handler_running: each(({ running }) => running),
      handler_waiting: each(({ inFlight, running }) => inFlight - running),
      handler_written_total: by('as', ({ written }) => written),
      claims_total: by('outcome', ({ claims: { stored, accepted, lost, refused } }) => {
        return { won: stored, lost, unproven: accepted, refused }
      }),
      claims_inherited_total: each(({ inherited }) => inherited),
    }
  },
})
