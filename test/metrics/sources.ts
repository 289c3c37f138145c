import { createManualClock } from '../support/manual-clock.ts'
import { Histogram } from '../../sidecar/core/histogram.ts'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'
import { Counters } from '../../sidecar/docstate/counters.ts'
import type { Engine, EngineHealth, EngineLag } from '../../sidecar/docstate/engine.ts'
import type { GlobalChangesCounts } from '../../sidecar/global-changes/writing/global-changes.ts'
import { noArrivals } from '../../sidecar/inbox/inbox-metrics.ts'
import type { IndexesCounts } from '../../sidecar/indexes/indexes.ts'
import { noMails } from '../../sidecar/mail/mail-metrics.ts'
import { databaseMetrics, type DatabaseSources } from '../../sidecar/databases/database-metrics.ts'
import { handlerMetrics } from '../../sidecar/databases/database-metrics.ts'
import { memoryMetrics } from '../../sidecar/databases/database-metrics.ts'
import { visitMetrics } from '../../sidecar/databases/database-metrics.ts'
import type { VisitCounts } from '../../sidecar/databases/visited-databases.ts'
import { eventMetrics } from '../../sidecar/events/events-feature.ts'
import type { ReaderCounts } from '../../sidecar/events/channel-feed.ts'
import type { DbUpdatesCounts } from '../../sidecar/global-changes/reading/db-updates.ts'
import { dbUpdatesMetrics } from '../../sidecar/global-changes/writing/global-changes-metrics.ts'
import { globalChangesMetrics } from '../../sidecar/global-changes/writing/global-changes-metrics.ts'
import { inboxMetrics } from '../../sidecar/inbox/inbox-metrics.ts'
import { indexMetrics } from '../../sidecar/indexes/index-metrics.ts'
import type { Entry } from '../../sidecar/indexes/entry.ts'
import { mailMetrics } from '../../sidecar/mail/mail-metrics.ts'
import { buildMetrics } from '../../sidecar/metrics/process-metrics.ts'
import type { Counted } from '../../sidecar/operator-page/per-database.ts'
import { documentMetrics } from '../../sidecar/operator-page/document-metrics.ts'
import { metricsOf, type Metrics } from '../../sidecar/metrics/metric.ts'
import { processMetrics } from '../../sidecar/metrics/process-metrics.ts'
import { workerMetrics } from '../../sidecar/workers/workers-feature.ts'
import type { ByteBudget } from '../../sidecar/core/byte-budget.ts'
import type { InboxCounts } from '../../sidecar/inbox/inbox-metrics.ts'
import type { MailCounts } from '../../sidecar/mail/mail-metrics.ts'

const nothing: GlobalChangesCounts = {
  ...{ on: true, pendingEvents: 0, pendingWrites: 0, written: 0, requests: 0, conflicts: 0 },
  ...{ swept: 0, lagMs: 0, sweptMsAgo: 0 },
}

export const noIndexes: IndexesCounts = {
  ...{ databases: 0, fresh: 0, behind: 0, failing: 0, worstLagMs: 0, queued: 0, resubmitted: 0 },
  ...{ building: 0, built: 0, failures: 0, lags: new Histogram(), requests: 0, swept: 0, pace: 1, paused: undefined },
  serversKen: 'unknown',
}

/** The sources of the features' numbers. */
export interface Sources extends DatabaseSources {
  readonly version: string
  readonly visits: VisitCounts
  readonly byteBudget: ByteBudget
  readonly mails: MailCounts
  readonly readers: ReaderCounts
  readonly inbox: InboxCounts
  readonly workers: number | undefined
  readonly globalChanges: GlobalChangesCounts
  readonly dbUpdates: DbUpdatesCounts
  readonly entries: readonly Entry[]
  readonly now: number
  readonly counted: Counted
}

/** The numbers of the features. Default: those of a sidecar that has done nothing. */
export const sourcesOf = (options: Partial<Sources> = {}): Sources => ({
  version: '1.2.3',
  engines: new Map(),
  databaseCounters: new Map([['control', new Counters()]]),
  paused: () => new Set(),
  clock: createManualClock(),
  counted: { databases: [], total: 0, isWhole: true, isKnown: true, unread: [], trouble: undefined },
  visits: { databases: 0, open: 0, waiting: 0, visits: 0, reads: 0, swept: 0 },
  byteBudget: createByteBudget(1000),
  mails: noMails(),
  readers: { open: 0, dropped: 0 },
  inbox: noArrivals(),
  workers: 1,
  globalChanges: nothing,
  dbUpdates: { readers: 0, rows: 0, pages: 0, slow: 0 },
  entries: [],
  now: 0,
  ...options,
})

/** The metrics of all features, read from these sources. */
export const metricsFrom = (sources: Sources): readonly Metrics[] => [
  metricsOf(databaseMetrics, sources),
  metricsOf(visitMetrics, () => sources.visits),
  metricsOf(handlerMetrics, sources),
  metricsOf(documentMetrics, {
    look: () => Promise.resolve(sources.counted),
    patterns: [...sources.databaseCounters.keys()],
    handledIn: (pattern) => [...sources.databaseCounters.get(pattern)!.handlers()],
    now: () => sources.now,
  }),
  metricsOf(memoryMetrics, sources.byteBudget),
  metricsOf(inboxMetrics, sources.inbox),
  metricsOf(mailMetrics, sources.mails),
  metricsOf(globalChangesMetrics, () => sources.globalChanges),
  metricsOf(dbUpdatesMetrics, () => sources.dbUpdates),
  metricsOf(eventMetrics, sources.readers),
  metricsOf(indexMetrics, {
    indexes: { counts: () => noIndexes, entries: () => sources.entries },
    clock: { ...createManualClock(), now: () => sources.now },
  }),
  metricsOf(workerMetrics, () => sources.workers),
  metricsOf(buildMetrics, sources.version),
  metricsOf(processMetrics, undefined),
]

/** The report of an engine, without a real engine. */
export function engineSaying(counts: Counters, health: Partial<EngineHealth>, lag: Partial<EngineLag> = {}): Engine {
  return {
    counts,
    health: () => ({
      ...{
        database: 'any',
        following: true,
        inFlight: 0,
        taken: 0,
        rewinds: 0,
        contended: 0,
        conflicts: 0,
        trouble: undefined,
      },
      ...health,
    }),
    rest: () => undefined,
    heldBack: () => undefined,
    lag: () => ({ unread: 0, unsettled: 0, behindMs: 0, slowHandlers: 0, ...lag }),
    run: () => Promise.resolve(),
  }
}
