import type { Clock } from '../core/clock.ts'
import type { Counters, HandlerCounters } from '../docstate/counters.ts'
import { addUp } from '../docstate/undeclared.ts'
import type { Engine, EngineHealth, EngineLag } from '../docstate/engine.ts'
import { counter, defineMetrics, gauge, one, histogram } from '../metrics/metric.ts'
import type { ByteBudget } from '../core/byte-budget.ts'
import type { VisitCounts } from './visited-databases.ts'

export const DATABASE = 'name or glob in the settings that selects the database'
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
    databases: gauge(
      'databases',
      'Databases that are followed or have an open visit. A named database counts once it exists.',
      ENGINES,
    ),
    databases_following: gauge('databases', 'Databases whose feed is being read.', WATCH),
    feed_changes_total: counter('changes', 'Changes read from feeds. A change that is read twice counts twice.', WATCH),
    feed_pending_changes: gauge(
      'changes',
      'Changes left to read. CouchDB reports the number after each 1,000 changes. 0 while it is unknown, and at the end of the feed.',
      LAG,
    ),
    feed_behind_seconds: gauge(
      'seconds',
      'Seconds since the feed was last known to be at its end; 0 at the end. The highest of several databases.',
      LAG,
    ),
    feed_unsettled_changes: gauge(
      'changes',
      'Changes read from feeds whose work is neither done nor recorded.',
      'feed/progress.ts',
    ),
    feed_failures_total: counter('failures', 'Failed reads of feeds. Each read is retried.', WATCH),
    feed_restarts_total: counter('restarts', 'Restarts of feeds from their start.', WATCH),
    handlers_behind: gauge(
      'handlers',
      'Handlers with more ready documents than fit into memory. The other documents wait in the database.',
      'docstate/finding/backlog.ts',
    ),
    documents_in_flight: gauge(
      'documents',
      'Documents with an attempt in progress, from dispatch to save.',
      'docstate/attempts.ts',
    ),
    documents_in_vain_total: counter(
      'documents',
      'Documents that this worker tried to claim, but another worker won.',
      'docstate/dispatch.ts',
    ),
    documents_undeclared: gauge(
      'documents',
      'Documents in a state that their machine does not declare. No handler takes them. For a glob, as of the last visits.',
      'docstate/finding/list-waiting.ts',
      { type: 'type of the documents', state: 'the undeclared state' },
    ),
    conflicts_resolved_total: counter('documents', 'Documents whose conflicting revisions were merged.', RESOLVE),
    conflicts_stuck_total: counter(
      'documents',
      'Documents whose conflict an operator must resolve. The log says how.',
      RESOLVE,
    ),
    write_requests_total: counter('requests', 'Requests to CouchDB that write documents.', WRITER),
    write_documents_total: counter('documents', 'Documents in write requests, by outcome.', WRITER, {
      outcome: 'stored, accepted (write quorum not reached), conflict, refused, unknown (no answer)',
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
    used_bytes: gauge('bytes', 'Bytes that documents in flight use.', BYTE_BUDGET),
    limit_bytes: gauge('bytes', 'Maximum bytes of documents in flight.', BYTE_BUDGET),
  },
  read: ({ used, budget }: ByteBudget) => ({ used_bytes: one(used), limit_bytes: one(budget) }),
})

const RUN_ATTEMPT = 'docstate/run-attempt.ts'
const EXECUTE = 'docstate/execute.ts'

export const handlerMetrics = defineMetrics({
  title: 'Handlers',
  labels: { database: DATABASE, type: 'type of the documents', state: 'state that the handler handles' },
  metrics: {
    handler_runs_total: counter('runs', 'Runs that have ended.', EXECUTE, {
      outcome: 'next, nothing, failed, rejected, claim-lost, stopped',
    }),
    handler_duration_seconds: histogram('seconds', 'Duration of runs, without the save of the outcome.', EXECUTE),
    handler_wait_seconds: histogram(
      'seconds',
      'Time from the read of a document to the start of its handler. The document waits for its key, a turn, a limit and its claim.',
      EXECUTE,
    ),
    handler_running: gauge('runs', 'Runs in progress.', EXECUTE),
    handler_overdue: gauge(
      'runs',
      'Runs that continue after their timeout, because the handler ignores ctx.signal.',
      EXECUTE,
    ),
    handler_waiting: gauge('documents', 'Documents in memory that wait for a turn, a claim or a save.', RUN_ATTEMPT),
    handler_oldest_seconds: gauge(
      'seconds',
      'Age of the oldest attempt that waits, runs or is being saved; 0 without one.',
      RUN_ATTEMPT,
    ),
    handler_paused: gauge('none', '1 while the handler is paused, 0 otherwise.', 'docstate/handler-limits.ts'),
    handler_written_total: counter(
      'documents',
      'Outcomes written to documents, after runs and after the loss of a worker.',
      'docstate/telemetry.ts',
      {
        as: 'saved, retry (failed, will be retried), error (failed for good), parked (an operator decides)',
      },
    ),
    claims_total: counter(
      'claims',
      'Claims of documents for unsafe handlers, by outcome.',
      'docstate/claims/win-claim.ts',
      {
        outcome: 'won, lost, unproven (write quorum not reached), refused',
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
    visited_databases: gauge('databases', 'Databases that this worker visits.', VISITED),
    visits_open: gauge('visits', 'Visits in progress.', VISITED),
    visits_waiting: gauge('databases', 'Databases that wait for a visit.', VISITED),
    visits_total: counter('visits', 'Visits that have ended.', VISITED),
    visit_reads_total: counter('requests', 'Requests of visits that read changes.', VISITED),
    visits_found_total: counter('databases', 'Databases whose changes only a sweep found.', VISITED),
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
