import { Histogram } from '../../sidecar/core/histogram.ts'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'
import { Counters } from '../../sidecar/docstate/counters.ts'
import type { Engine, EngineHealth, EngineLag } from '../../sidecar/docstate/engine.ts'
import type { GlobalChangesCounts } from '../../sidecar/global-changes/writing/global-changes.ts'
import { noArrivals } from '../../sidecar/inbox/counts.ts'
import type { IndexesCounts } from '../../sidecar/indexes/indexes.ts'
import { noMails } from '../../sidecar/mail/counts.ts'
import type { Sources } from '../../sidecar/metrics/sources.ts'

const nothing: GlobalChangesCounts = {
  ...{ on: true, pendingEvents: 0, pendingWrites: 0, written: 0, requests: 0, conflicts: 0 },
  ...{ swept: 0, lagMs: 0, sweptMsAgo: 0 },
}

export const noIndexes: IndexesCounts = {
  ...{ databases: 0, fresh: 0, behind: 0, failing: 0, worstLagMs: 0, queued: 0, resubmitted: 0 },
  ...{ building: 0, built: 0, failures: 0, lags: new Histogram(), requests: 0, swept: 0, pace: 1, paused: undefined },
  serversKen: 'unknown',
}

/** Numbers as the parts keep them: of a sidecar that has not done anything, unless told. */
export const sourcesOf = (options: Partial<Sources> = {}): Sources => ({
  version: '1.2.3',
  engines: new Map(),
  databaseCounters: new Map([['control', new Counters()]]),
  visited: () => ({ databases: 0, open: 0, waiting: 0, visits: 0, reads: 0, swept: 0 }),
  byteBudget: createByteBudget(1000),
  mails: noMails(),
  readers: { open: 0, dropped: 0 },
  inbox: noArrivals(),
  workers: () => 1,
  globalChanges: () => nothing,
  dbUpdates: () => ({ readers: 0, rows: 0, pages: 0, slow: 0 }),
  indexes: () => ({ counts: noIndexes, entries: [], now: 0 }),
  ...options,
})

/** What an engine tells of itself, without one. */
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
        inVain: 0,
        conflicts: 0,
        trouble: undefined,
      },
      ...health,
    }),
    rest: () => undefined,
    lag: () => ({ unread: 0, unsettled: 0, behindMs: 0, slowHandlers: 0, ...lag }),
    run: () => Promise.resolve(),
  }
}
