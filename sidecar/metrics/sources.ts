import type { ByteBudget } from '../core/byte-budget.ts'
import type { Counters } from '../docstate/counters.ts'
import type { Engine } from '../docstate/engine.ts'
import type { DbUpdatesCounts } from '../global-changes/reading/db-updates.ts'
import type { GlobalChangesCounts } from '../global-changes/writing/global-changes.ts'
import type { ReaderCounts } from '../events/channel-feed.ts'
import type { Entry } from '../indexes/entry.ts'
import type { InboxCounts } from '../inbox/counts.ts'
import type { IndexesCounts } from '../indexes/indexes.ts'
import type { MailCounts } from '../mail/counts.ts'

/** Where the numbers are: kept by the parts, read when somebody asks for metrics. */
export interface Sources {
  /** Of this program. */
  readonly version: string
  /** Of the databases that are served now. */
  readonly engines: ReadonlyMap<string, Engine>
  /** What engines have counted, by the name or glob that their databases are served by. */
  readonly databaseCounters: ReadonlyMap<string, Counters>
  readonly visited: () => VisitedReading
  readonly byteBudget: ByteBudget
  readonly mails: MailCounts
  readonly readers: ReaderCounts
  readonly inbox: InboxCounts
  /** How many sidecars are known; undefined as long as nobody knows. */
  readonly workers: () => number | undefined
  readonly globalChanges: () => GlobalChangesCounts
  readonly dbUpdates: () => DbUpdatesCounts
  readonly indexes: () => IndexesReading
}

/** Of the databases that globs stand for. */
export interface VisitedReading {
  /** Databases that are looked after here. */
  readonly databases: number
  /** Visits under way. */
  readonly open: number
  /** Databases that wait for one. */
  readonly waiting: number
  /** Visits that have ended. */
  readonly visits: number
  /** Requests for changes. */
  readonly reads: number
  /** Databases that a sweep found further than they were known to be. */
  readonly swept: number
}

export interface IndexesReading {
  readonly counts: IndexesCounts
  readonly entries: Iterable<Entry>
  /** Milliseconds since the epoch. */
  readonly now: number
}
