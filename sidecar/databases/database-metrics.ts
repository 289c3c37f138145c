import type { Counters } from '../docstate/counters.ts'
import { addUp } from '../docstate/undeclared.ts'
import type { Engine, EngineHealth, EngineLag } from '../docstate/engine.ts'
import { counter, defineMetrics, gauge } from '../metrics/metric.ts'

export const DATABASE = 'the name or glob in the settings by which it is followed'
const ENGINES = 'databases/serve.ts'
const WATCH = 'docstate/finding/watch.ts'
const LAG = 'feed/lag.ts'
const RESOLVE = 'docstate/conflicts/resolve.ts'
const WRITER = 'couch/writer.ts'

export interface DatabaseSources {
  /** The engines of the databases that are served now, by database. */
  readonly engines: ReadonlyMap<string, Engine>
  /** What engines have counted, by the name or glob of the settings. */
  readonly databaseCounters: ReadonlyMap<string, Counters>
}

/** The databases that are followed by one name or glob. */
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
      'Databases that are followed, or are being visited: those that were named and are there, and of a glob some.',
      ENGINES,
    ),
    databases_following: gauge('databases', 'Databases whose feed is being read.', WATCH),
    feed_changes_total: counter('changes', 'Changes read from feeds; one that comes again counts again.', WATCH),
    feed_pending_changes: gauge(
      'changes',
      'Changes still to be read. CouchDB says it after each thousand; 0 while it has not, and at the end of the feed.',
      LAG,
    ),
    feed_behind_seconds: gauge(
      'seconds',
      'For how long the feed is not known to be read to its end, 0 if it is; of several databases the longest.',
      LAG,
    ),
    feed_unsettled_changes: gauge(
      'changes',
      'Changes that were read, of which it is neither done nor written down what they ask for.',
      'feed/progress.ts',
    ),
    feed_failures_total: counter('failures', 'Times a feed could not be read; it is tried again.', WATCH),
    feed_restarts_total: counter('restarts', 'Times a feed began again from its start.', WATCH),
    handlers_behind: gauge(
      'handlers',
      'Handlers with more documents to do than fit into their memory; the rest waits in the database.',
      'docstate/finding/backlog.ts',
    ),
    documents_in_flight: gauge('documents', 'Documents under way, from claim to save.', 'docstate/attempts.ts'),
    documents_in_vain_total: counter(
      'documents',
      'Documents that were reached for, and another worker had won.',
      'docstate/dispatch.ts',
    ),
    documents_undeclared: gauge(
      'documents',
      'Documents in a state that their machine does not declare: no handler takes them. Of a glob as of the last visits.',
      'docstate/finding/list-waiting.ts',
      { type: 'of the documents', state: 'the one that is not declared' },
    ),
    conflicts_resolved_total: counter('documents', 'Conflicts of replication that were made one document.', RESOLVE),
    conflicts_stuck_total: counter(
      'documents',
      'Conflicts that stay until a person does something; the log says what.',
      RESOLVE,
    ),
    write_requests_total: counter('requests', 'Requests to write documents.', WRITER),
    write_documents_total: counter('documents', 'Documents in requests to write, by what became of them.', WRITER, {
      outcome: 'stored, accepted (by less than the quorum of a cluster), conflict, refused, unknown (no answer)',
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
      documents_in_vain_total: counted(({ inVain }) => inVain),
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
