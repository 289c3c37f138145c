import type { Clock } from '../core/clock.ts'
import type { Counters, HandlerCounters } from '../docstate/counters.ts'
import { addUp } from '../docstate/undeclared.ts'
import type { Engine, EngineHealth, EngineLag } from '../docstate/engine.ts'
import { counter, defineMetrics, gauge, one, histogram } from '../metrics/metric.ts'
import type { ByteBudget } from '../core/byte-budget.ts'
import type { VisitCounts } from './visited-databases.ts'

export const DATABASE = 'name or glob that the database matches'
const ENGINES = 'databases/databases-feature.ts'
const WATCH = 'docstate/finding/watch.ts'
const LAG = 'feed/lag.ts'
const RESOLVE = 'docstate/conflicts/resolve.ts'
const WRITER = 'couch/writer.ts'

export interface DatabaseSources {
  /** The engines of the databases that are served now, by database. */
  readonly engines: ReadonlyMap<string, Engine>
  /** Counters of the engines, by the name or glob of the settings. */
  readonly databaseCounters: ReadonlyMap<string, Counters>
  /** Paused handlers, by `type/state`. */
  readonly paused: () => ReadonlySet<string>
  readonly clock: Pick<Clock, 'ticks'>
}

/** The served databases that match one name or glob of the settings. */
interface Followed {
  readonly database: string
  readonly counts: Counters
  readonly engines: readonly { readonly health: EngineHealth; readonly lag: EngineLag }[]
}

export const databaseMetrics = defineMetrics({
  title: 'Databases',
  labels: { database: DATABASE },
  metrics: {
    databases: gauge('databases', 'Followed databases that exist, and databases with a visit in progress.', ENGINES),
    databases_following: gauge(
      'databases',
      'Databases whose feed is connected. If some are missing, GET /_up says which and why.',
      WATCH,
    ),
    feed_changes_total: counter('changes', 'Changes read from feeds. A change that is read twice counts twice.', WATCH),
    feed_pending_changes: gauge(
      'changes',
      'Changes left to read, as CouchDB reports after each 1,000 changes. 0 at the end of the feed, and while the number is unknown.',
      LAG,
    ),
    feed_behind_seconds: gauge(
      'seconds',
      'Time since the feed was last known to be at its end; 0 at its end. With several databases, the longest time.',
      LAG,
    ),
    feed_unsettled_changes: gauge(
      'changes',
      'Changes that were read, but whose work is neither done nor recorded. After a crash they are read again.',
      'feed/progress.ts',
    ),
    feed_failures_total: counter('failures', 'Failed reads of feeds. The sidecar retries each read.', WATCH),
    feed_restarts_total: counter('restarts', 'Feeds that were read again from their start. The log says why.', WATCH),
    handlers_behind: gauge(
      'handlers',
      'Handlers with more ready documents than fit into memory. The rest waits in the database.',
      'docstate/finding/backlog.ts',
    ),
    documents_in_flight: gauge(
      'documents',
      'Documents with an attempt in progress, from dispatch to save.',
      'docstate/attempts.ts',
    ),
    documents_in_vain_total: counter(
      'documents',
      'Documents that another worker claimed before this worker could.',
      'docstate/dispatch.ts',
    ),
    documents_undeclared: gauge(
      'documents',
      'Documents in a state that the state machine of their type does not declare. No handler takes them: correct the state, or declare it. Counted at the last resync or visit of a database.',
      'docstate/finding/list-waiting.ts',
      { type: 'type of the documents', state: 'the undeclared state' },
    ),
    conflicts_resolved_total: counter('documents', 'Documents whose conflicting revisions were merged.', RESOLVE),
    conflicts_stuck_total: counter(
      'documents',
      'Documents with a conflict that an operator must resolve. The log names them and says how.',
      RESOLVE,
    ),
    write_requests_total: counter('requests', 'Requests to CouchDB that write documents.', WRITER),
    write_documents_total: counter('documents', 'Documents in write requests, by outcome.', WRITER, {
      outcome:
        'stored, accepted (stored, but the write quorum was not reached), conflict (a newer revision exists), refused (by CouchDB), unknown (no answer)',
    }),
  },
  read({ databaseCounters, engines }: DatabaseSources) {
    const all: Followed[] = [...databaseCounters].map(([database, counts]) => {
      const theirs = [...engines.values()].filter((engine) => engine.counts === counts)
      return { database, counts, engines: theirs.map((engine) => ({ health: engine.health(), lag: engine.lag() })) }
    })
    const each = (valueOf: (one: Followed) => number) =>
      all.map((one) => [valueOf(one), { database: one.database }] as const)
    const counted = (valueOf: (counts: Counters) => number) => each(({ counts }) => valueOf(counts))
    const added = (valueOf: (engine: Followed['engines'][number]) => number) =>
      each(({ engines }) => engines.reduce((sum, engine) => sum + valueOf(engine), 0))
    const longest = ({ engines }: Followed) => engines.reduce((most, { lag }) => Math.max(most, lag.behindMs), 0)
    return {
      databases: each(({ engines }) => engines.length),
      databases_following: added(({ health }) => Number(health.following)),
      feed_changes_total: counted(({ changes }) => changes),
      feed_pending_changes: added(({ lag }) => lag.unread),
      feed_behind_seconds: each((one) => longest(one) / 1000),
      feed_unsettled_changes: added(({ lag }) => lag.unsettled),
      feed_failures_total: counted(({ feed }) => feed.broken),
      feed_restarts_total: counted(({ feed }) => feed.rewound),
      handlers_behind: added(({ lag }) => lag.slowHandlers),
      documents_in_flight: added(({ health }) => health.inFlight),
      documents_in_vain_total: counted(({ contended }) => contended),
      documents_undeclared: all.flatMap(({ database, counts }) =>
        addUp([...counts.undeclared.values()].flat()).map(
          ({ type, state, count }) => [count, { database, type, state }] as const,
        ),
      ),
      conflicts_resolved_total: counted(({ conflicts }) => conflicts.resolved),
      conflicts_stuck_total: counted(({ conflicts }) => conflicts.stuck),
      write_requests_total: counted(({ writes }) => writes.requests),
      write_documents_total: all.flatMap(({ database, counts }) => {
        const { requests: _, ...outcomes } = counts.writes
        return Object.entries(outcomes).map(([outcome, count]) => [count, { database, outcome }] as const)
      }),
    }
  },
})

const BYTE_BUDGET = 'core/byte-budget.ts'

export const memoryMetrics = defineMetrics({
  title: 'Memory',
  prefix: 'couchdb_sidecar_memory_',
  metrics: {
    used_bytes: gauge(
      'bytes',
      'Bytes of documents in flight. May exceed the limit: one document of each handler is always accepted.',
      BYTE_BUDGET,
    ),
    limit_bytes: gauge('bytes', 'Maximum bytes of documents in flight (SIDECAR_MEMORY).', BYTE_BUDGET),
  },
  read: ({ used, budget }: ByteBudget) => ({ used_bytes: one(used), limit_bytes: one(budget) }),
})

const RUN_ATTEMPT = 'docstate/run-attempt.ts'
const EXECUTE = 'docstate/execute.ts'

export const handlerMetrics = defineMetrics({
  title: 'Handlers',
  labels: { database: DATABASE, type: 'type of the documents', state: 'state that the handler handles' },
  metrics: {
    handler_runs_total: counter('runs', 'Runs that have ended, by outcome.', EXECUTE, {
      outcome:
        'next (a new document), nothing (no new document), failed (retried, up to the option attempts), rejected (not retried), claim-lost (another worker may have it), stopped (the sidecar stops)',
    }),
    handler_duration_seconds: histogram(
      'seconds',
      'Duration of runs. Does not include the save of the outcome.',
      EXECUTE,
    ),
    handler_wait_seconds: histogram(
      'seconds',
      'Time from the read of a document to the start of its handler: the wait for documents with the same key, for concurrency, for the rate limit, and for the claim.',
      EXECUTE,
    ),
    handler_running: gauge('runs', 'Runs in progress.', EXECUTE),
    handler_overdue: gauge(
      'runs',
      'Runs that continue after their timeout, because the handler ignores ctx.signal. Only a restart of the sidecar ends a run that hangs.',
      EXECUTE,
    ),
    handler_waiting: gauge(
      'documents',
      'Documents in memory whose handler is not running: they wait for its start, or for the save of its outcome.',
      RUN_ATTEMPT,
    ),
    handler_oldest_seconds: gauge(
      'seconds',
      'Age of the oldest attempt that waits, runs or is being saved; 0 without one.',
      RUN_ATTEMPT,
    ),
    handler_paused: gauge(
      'none',
      '1 while the handler is paused, 0 otherwise. To resume it: couchdb-sidecar resume type/state.',
      'docstate/handler-limits.ts',
    ),
    handler_written_total: counter(
      'documents',
      'Outcomes written to documents: after a run, or after the worker of the document was lost.',
      'docstate/telemetry.ts',
      {
        as: 'saved, retry (failed, will be retried), error (failed for good), parked (an operator must decide)',
      },
    ),
    claims_total: counter(
      'claims',
      'Claims of documents for unsafe handlers, by outcome.',
      'docstate/claims/win-claim.ts',
      {
        outcome:
          'won, lost (another write was first), unproven (the write quorum was not reached), refused (by CouchDB)',
      },
    ),
    claims_inherited_total: counter(
      'documents',
      'Documents taken over from workers that did not renew their claims.',
      'docstate/rescue.ts',
    ),
  },
  read({ databaseCounters, paused, clock }: Omit<DatabaseSources, 'engines'>) {
    const [ticks, arePaused] = [clock.ticks(), paused()]
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
      handler_wait_seconds: each(({ waited }) => waited),
      handler_running: each(({ running }) => running),
      handler_overdue: each(({ overdue }) => overdue),
      handler_waiting: each(({ inFlight, running }) => inFlight - running),
      handler_oldest_seconds: each((counts) => counts.oldestMs(ticks) / 1000),
      handler_paused: all.map(
        ({ labels }) => [Number(arePaused.has(`${labels.type}/${labels.state}`)), labels] as const,
      ),
      handler_written_total: by('as', ({ written }) => written),
      claims_total: by('outcome', ({ claims: { stored, accepted, lost, refused } }) => {
        return { won: stored, lost, unproven: accepted, refused }
      }),
      claims_inherited_total: each(({ inherited }) => inherited),
    }
  },
})

const VISITED = 'databases/visited-databases.ts'

export const visitMetrics = defineMetrics({
  title: 'Databases that match a glob',
  metrics: {
    visited_databases: gauge('databases', 'Databases that this worker visits when they change.', VISITED),
    visits_open: gauge('visits', 'Visits in progress.', VISITED),
    visits_waiting: gauge('databases', 'Databases that wait for a visit.', VISITED),
    visits_total: counter('visits', 'Visits that have ended.', VISITED),
    visit_reads_total: counter('requests', 'Requests that read changes for visits.', VISITED),
    visits_found_total: counter(
      'databases',
      'Databases with a change that only a sweep found: no database event had reported it.',
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
