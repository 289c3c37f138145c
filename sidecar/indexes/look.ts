import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Book, Page } from './book.ts'
import { decide } from './decide.ts'
import type { DesignDocsReader } from './design-docs.ts'
import type { Entry } from './entry.ts'
import { indexesOf, type IndexKind } from './indexes-of.ts'
import type { Kind } from './kinds/kind.ts'
import type { Kinds } from './kinds/kinds.ts'
import type { KenSettings } from './index-settings.ts'

/** Maximum numbers of running builds. */
export interface Channels {
  readonly batch: number
  /** Includes channels for indexes that lack few changes. */
  readonly total: number
}

export interface LookOptions {
  readonly book: Book
  readonly designDocs: DesignDocsReader
  readonly kinds: () => Kinds
  readonly channels: () => Channels
  /** Number of running builds. */
  readonly active: () => number
  readonly start: (entry: Entry, page: Page) => void
  readonly settings: () => KenSettings
  readonly clock: Clock
  readonly random: Random
}

/** Decisions that remain for later. */
export interface Looked {
  /** Time until the first of them, if any. */
  readonly waitMs: number | undefined
  /** True if an index found no free channel. */
  readonly isRefused: boolean
}

/**
 * Checks the indexes of a database, in random order, and starts all possible builds. Undefined if the database is
 * missing, or was removed from the book meanwhile. Throws `CouchError`.
 */
export type Look = (database: string, signal: AbortSignal) => Promise<Looked | undefined>

export function createLook(options: LookOptions): Look {
  const { book, designDocs, kinds, channels, active, start, settings, clock, random } = options

  /** Updates the book: the indexes of a database, and its position. */
  async function read(database: string, signal: AbortSignal): Promise<readonly Entry[] | undefined> {
    const page = book.open(database)
    page.touchedAt = undefined
    const found = await designDocs.read(database, signal)
    if (!found || book.get(database) !== page) return undefined
    page.seq = found.seq
    if (!found.areSame) {
      const can = Object.keys(kinds()) as IndexKind[]
      const indexes = found.docs.flatMap((doc) => indexesOf(database, doc, can))
      book.list(database, indexes, clock.now())
    }
    return [...page.entries.values()].filter(({ isForeign }) => !isForeign)
  }

  const decideOn = (entry: Entry, kind: Kind, seq: number, signal: AbortSignal) => {
    const { max_incremental_updates, batch_size, delay } = settings()
    const { job, index } = entry
    return decide({
      ...{ job, seq, active: active(), ...channels(), now: clock.ticks() },
      ...{ maxIncrementalUpdates: max_incremental_updates, batchSize: batch_size, delayMs: delay },
      lag: async () => (await kind.read(index, seq, signal)).lag,
    })
  }

  return async (database, signal) => {
    const entries = await read(database, signal)
    if (!entries) return undefined
    const page = book.open(database)
    const waits: number[] = []
    let isRefused = false
    for (const entry of shuffled(entries, random)) {
      const kind = kinds()[entry.index.kind]
      if (!kind) continue // the server lost this kind, so the database is queued again
      const decision = await decideOn(entry, kind, page.seq, signal)
      const isDoubtful = decision.kind === 'fresh' && kind.hasCopies === true
      const isFree = active() < channels().total // other builds may have begun meanwhile
      if ((decision.kind === 'start' || isDoubtful) && isFree) start(entry, page)
      else if (decision.kind === 'fresh' && !isDoubtful) entry.confirm(clock.now(), page.touchedAt)
      else if (decision.kind === 'running') entry.again = true
      else if (decision.kind === 'wait') waits.push(decision.ms)
      else {
        isRefused = true
        if (decision.kind === 'full' && decision.ms !== undefined) waits.push(decision.ms)
      }
    }
    return { waitMs: waits.length > 0 ? Math.min(...waits) : undefined, isRefused }
  }
}

/** Random order: otherwise the first index would always get the channel. */
function shuffled<T>(list: readonly T[], random: Random): T[] {
  const drawn = list.map((one) => ({ one, at: random() }))
  return drawn.sort((a, b) => a.at - b.at).map(({ one }) => one)
}
