import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { withTimeout } from '../../core/timeout.ts'
import type { Database } from '../../couch/database.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import type { Partition, TypeAndState } from '../../workers/partitioning.ts'
import type { DispatchTable } from '../classify.ts'
import type { UndeclaredCount } from '../undeclared.ts'
import type { Backlog } from './backlog.ts'
import type { DelayQueue } from './delay-queue.ts'
import type { ReadAndDispatch } from './read-and-dispatch.ts'
import type { ListPages } from './pages.ts'
import { createListWaiting } from './list-waiting.ts'

export interface ResyncOptions {
  readonly database: Database
  readonly table: () => DispatchTable
  readonly partition: Partition
  readonly listPages: ListPages
  readonly delayQueue: DelayQueue
  readonly readAndDispatch: ReadAndDispatch
  /** Whether an attempt of the document is in progress. */
  readonly isInProgress: (id: string) => boolean
  /** Receives the counts of undeclared states at each resync. */
  readonly undeclared: (counts: readonly UndeclaredCount[]) => void
  readonly isPaused: (pair: TypeAndState) => boolean
  readonly onPaused: (pair: TypeAndState) => void
  readonly backlog: Backlog
  /** Interval between two resyncs. Milliseconds. */
  readonly resyncMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /**
   * Resolves when the feed is read to its end and its documents are done. The first resync waits only a limited time.
   */
  readonly whenCaughtUp: () => Promise<unknown>
  /** Whether to begin with a resync. False if it is known that no document waits. */
  readonly resyncFirst: boolean
  /** Called when the database is gone. */
  readonly prepare: (signal: AbortSignal) => Promise<void>
}

const FIRST_RESYNC_MS = 60_000
/** Delay before a due document is checked whose attempt is in progress. */
const IN_PROGRESS_MS = 1000
/** Delay between tries of the first resync. */
const UNLISTED_MS = 5000

/** Checks documents without a change in the feed: due documents, and the list. Runs until the signal aborts. */
export interface Resync {
  /** Whether a check is running, or the first resync is still to come. */
  readonly isBusy: boolean
  /** Checks documents that are due: for another attempt, a state's timeout, or another worker's lease. */
  runDelayed(signal: AbortSignal): Promise<void>
  /** Resyncs every minute, and when our partition changes. */
  runPeriodically(signal: AbortSignal): Promise<void>
  /** Resyncs at once: documents may wait without a change in the feed. */
  soon(): void
}

export function createResync(options: ResyncOptions): Resync {
  const { database, table, partition, delayQueue, readAndDispatch, backlog, resyncMs, clock, random, log } = options
  const { isInProgress, whenCaughtUp, resyncFirst, prepare, undeclared, listPages, isPaused, onPaused } = options
  let looks = 0
  let isListed = !resyncFirst
  let wake = () => {}
  const listWaiting = createListWaiting({
    database,
    table,
    partition,
    listPages,
    clock,
    undeclared,
    isPaused,
    onPaused,
    horizonMs: resyncMs * 2,
    take: takePage,
    later: (at) => delayQueue.later(at),
  })

  /** Takes one page. If a queue is full, the backlog reads the rest. */
  async function takePage(ids: readonly string[], anyway: boolean, signal: AbortSignal): Promise<boolean> {
    const left = await readAndDispatch(ids, (queue) => (backlog.add(queue), false), signal, anyway)
    return left.length === 0
  }

  /** Resyncs once. Returns the delay before the next resync, milliseconds. */
  async function resyncOnce(signal: AbortSignal): Promise<number> {
    looks += 1
    const later = delayQueue.forgetLater()
    const wasListed = isListed
    isListed = true // unless `soon` is called meanwhile
    try {
      await listWaiting(signal)
      log.debug('resynced')
      return resyncMs
    } catch (thrown) {
      delayQueue.later(later)
      isListed &&= wasListed
      if (!(thrown instanceof CouchError)) throw thrown
      log.warn(
        { code: thrown.code, reason: thrown.message },
        'cannot list the documents in handled states; trying again',
      )
      if (thrown.code === 'not_found') await prepare(signal)
      return isListed ? resyncMs : Math.min(resyncMs, UNLISTED_MS)
    } finally {
      looks -= 1
    }
  }

  return {
    get isBusy() {
      return looks > 0 || !isListed
    },

    async runDelayed(signal) {
      for (;;) {
        const ids = await delayQueue.next(signal)
        for (const id of ids.filter(isInProgress)) delayQueue.add(id, clock.now() + IN_PROGRESS_MS)
        looks += 1
        try {
          await readAndDispatch(ids, (queue) => (backlog.add(queue), true), signal)
        } catch (thrown) {
          if (!(thrown instanceof CouchError)) throw thrown
          for (const id of ids) delayQueue.add(id, clock.now() + 1000 + random() * 4000)
        } finally {
          looks -= 1
        }
      }
    },

    async runPeriodically(signal) {
      partition.onChange(() => wake(), signal)
      if (resyncFirst) await withTimeout(clock, FIRST_RESYNC_MS, whenCaughtUp(), signal)
      for (let isDue = resyncFirst; ; isDue = true) {
        signal.throwIfAborted()
        const moved = new Promise<void>((resolve) => (wake = resolve)) // before the resync, which a change may outdate
        const nextMs = isDue ? await resyncOnce(signal) : resyncMs
        await withTimeout(clock, nextMs * (0.8 + random() * 0.4), moved, signal)
      }
    },

    soon() {
      isListed = false
      wake()
    },
  }
}
