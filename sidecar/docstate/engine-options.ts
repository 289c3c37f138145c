import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { ByteBudget } from '../core/byte-budget.ts'
import type { Semaphore } from '../core/semaphore.ts'
import type { Database } from '../couch/database.ts'
import type { Seq } from '../couch/documents.ts'
import type { Events } from '../events/channels.ts'
import type { CheckpointStore } from '../feed/checkpoint-store.ts'
import type { Tracing } from '../tracing/tracing.ts'
import type { Registry } from '../workers/registry.ts'
import type { Partition } from '../workers/partitioning.ts'
import type { Lease } from './claims/lease.ts'
import type { DispatchTable } from './classify.ts'
import type { Counters } from './counters.ts'
import type { HandlerLimits } from './handler-limits.ts'
import type { Place } from './finding/feed-places.ts'
import type { ReadFeed } from './finding/watch.ts'
import type { MailBinding } from './mail.ts'
import type { Quarantine } from './quarantine.ts'
import type { RecentFailures } from './recent-failures.ts'
import type { Waits } from './waits.ts'

export interface EngineOptions {
  readonly database: Database
  readonly table: DispatchTable
  readonly mailer: MailBinding
  /** `ctx.workers` of the handlers. */
  readonly workers: Registry
  /** Channels for the engine's events; `ctx.events` of the handlers. */
  readonly events: Events
  /** Creates spans for the work on documents. Default: none. */
  readonly tracing?: Tracing | undefined
  /** Name of this worker in claims. */
  readonly worker: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** This worker's partition of the documents. Default: all documents. */
  readonly partition?: Partition
  /** Counters that the engine increments; engines that share them have common totals in `health()`. Default: own. */
  readonly counts?: Counters
  /** Budget for documents under way; one for all engines of a process. Default: 12 MB of its own. */
  readonly byteBudget?: ByteBudget
  /** Permits for writes and for reads of held documents; shared by all engines of a process. Default: 2 of its own. */
  readonly turns?: Semaphore
  /** Isolates documents that crash processes; shared by all engines of a process. Default: one of its own. */
  readonly quarantine?: Quarantine
  /** Keeps the stacks of failures; shared by all engines of a process. Default: none are kept. */
  readonly recentFailures?: RecentFailures
  /** Limits of the handlers; shared by all engines of a process. Default: own, with this database as `control`. */
  readonly limits?: HandlerLimits
  /** The control database: stores what all workers share about a handler. Default: this database. */
  readonly control?: Database
  /** The lease of claims. The engines of a process share it. Default 30 s. */
  readonly lease?: Lease
  /** Grace period for running handlers when the sidecar stops. Default 10 s. */
  readonly graceMs?: number
  /** Time between two resyncs of all documents in handled states. Default 60 s. */
  readonly resyncMs?: number
  /** Heartbeat interval of the feed. Default 10 s. */
  readonly heartbeatMs?: number
  /** For a visited database; a followed database has none. */
  readonly visit?: Visit
  /** Deploys the design document if it is missing because the database was recreated. */
  readonly prepare?: (signal: AbortSignal) => Promise<unknown>
  /** Returns the dispatch table after a change of the design document. Default: the same table. Throws `CouchError`. */
  readonly matchAgain?: (rev: string, signal: AbortSignal) => Promise<DispatchTable>
}

/** How a database is visited: see docs/designs/many-databases.md. */
export interface Visit {
  /** Copies of each document in the cluster; undefined if not known yet. */
  readonly copies: number | undefined
  readonly read: ReadFeed
  /** Stores the checkpoint for the next visit. */
  readonly checkpoints: CheckpointStore
  /** Aborts when the sidecar stops or leaves the database. Until then, a visit that is over waits for its last save. */
  readonly stopping: AbortSignal
  /** Feed position where handlers begin that take only new documents. Default: the current one. */
  readonly first: Seq | undefined
  /** Whether documents before the checkpoint may wait: the visit then begins with a resync. */
  readonly listFirst: boolean
  /** Without `listFirst`: time when the next of these documents is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined
  /** Paused handlers that have waiting documents, as `type/state`. The engine adds to this set. */
  readonly paused: Set<string>
  /** Feed positions of the handlers, by id; kept from visit to visit. */
  readonly places: Map<string, Place>
  /** Kept from visit to visit: otherwise each visit would wait for a full lease. */
  readonly waits: Waits
}
