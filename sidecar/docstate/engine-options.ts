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
import type { DispatchTable } from './classify.ts'
import type { Counters } from './counters.ts'
import type { HandlerLimits } from './handler-limits.ts'
import type { Place } from './finding/feed-places.ts'
import type { ReadFeed } from './finding/watch.ts'
import type { MailBinding } from './mail.ts'
import type { Quarantine } from './quarantine.ts'
import type { Waits } from './waits.ts'

export interface EngineOptions {
  readonly database: Database
  readonly table: DispatchTable
  readonly mailer: MailBinding
  /** For handlers, as `ctx.workers`. */
  readonly workers: Registry
  /** Where what happens is told; for handlers, as `ctx.events`. */
  readonly events: Events
  /** Makes spans of what happens to documents. Default none. */
  readonly tracing?: Tracing | undefined
  /** Name of this worker, as it stands in claims. */
  readonly worker: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** This worker's partition of the documents. Default everything. */
  readonly partition?: Partition
  /** Added to; those who share it are counted together, in `health()` too. Default one of its own. */
  readonly counts?: Counters
  /** For documents in flight; one for all engines of a process. Default 12 MB of its own. */
  readonly byteBudget?: ByteBudget
  /** For writing, and for asking about what is held; shared by all engines of a process. Default two of its own. */
  readonly turns?: Semaphore
  /** For what processes die of; shared by all engines of a process. Default one of its own. */
  readonly quarantine?: Quarantine
  /** Of the handlers; shared by all engines of a process. Default its own, with this database as the control database. */
  readonly limits?: HandlerLimits
  /** Where it is kept what all workers know of a handler. Default this database. */
  readonly control?: Database
  /** How long a claim is believed without a renewal. Default 30 s. */
  readonly leaseMs?: number
  /** How long running handlers may take to end when the sidecar stops. Default 10 s. */
  readonly graceMs?: number
  /** Time between two looks at everything that is in a handled state. Default 60 s. */
  readonly resyncMs?: number
  /** heartbeat asked of the server. Default 10 s. */
  readonly heartbeatMs?: number
  /** For a database that is visited now and then; one that is followed has none. */
  readonly visit?: Visit
  /** Brings the design document into the database where it is missing: the database was made again. */
  readonly prepare?: (signal: AbortSignal) => Promise<unknown>
  /** Says what is handled now that the design document has changed. Default: as before. Throws `CouchError`. */
  readonly matchAgain?: (rev: string, signal: AbortSignal) => Promise<DispatchTable>
}

/** How a database is visited: see docs/designs/many-databases.md. */
export interface Visit {
  readonly read: ReadFeed
  /** Where the checkpoint is kept, for the next visit. */
  readonly checkpoints: CheckpointStore
  /** Where handlers begin that take only what is new. Default: where it is now. */
  readonly first: Seq | undefined
  /** Whether there may be documents before the checkpoint that wait: then it begins with the list. */
  readonly listFirst: boolean
  /** Otherwise: when the next of them is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined
  /** Handlers that have documents in the list while they are paused, by `type/state`: added to. */
  readonly paused: Set<string>
  /** Of its handlers, by their ids; goes on from visit to visit. */
  readonly places: Map<string, Place>
  /** Goes on from visit to visit: each would wait for a whole lease. */
  readonly waits: Waits
}
