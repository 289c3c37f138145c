import { onAbort } from '../core/on-abort.ts'
import { withTimeout } from '../core/timeout.ts'
import type { CouchErrorCode } from '../couch/couch-errors.ts'
import type { Rest } from '../feed/checkpoint-store.ts'
import type { Counters } from './counters.ts'
import type { EngineOptions } from './engine-options.ts'
import { createParts } from './parts.ts'

export type { EngineOptions, Visit } from './engine-options.ts'

export interface EngineHealth {
  readonly database: string
  /** Whether the feed is being read; for a visited database, whether it can be read. */
  readonly following: boolean
  /** Documents with an attempt under way. */
  readonly inFlight: number
  /** Attempts started so far. */
  readonly taken: number
  /** Number of feed restarts from the beginning. */
  readonly rewinds: number
  /** Attempts for documents that another worker had won. */
  readonly contended: number
  /** Resolved conflicts. */
  readonly conflicts: number
  /** Error code if the feed cannot be read now. */
  readonly trouble: CouchErrorCode | undefined
}

/** How far an engine is behind its database. */
export interface EngineLag {
  /** Changes still to be read, as reported by CouchDB. */
  readonly unread: number
  /** Changes that were read but whose work is neither done nor recorded. */
  readonly unsettled: number
  /** How long the feed is not known to be at the end, milliseconds; 0 at the end. */
  readonly behindMs: number
  /** Handlers without room: their documents wait in the list. */
  readonly slowHandlers: number
}

/** The engine of one database: everything between its feed and the last save. */
export interface Engine {
  /** Runs until the signal aborts. Resolves when all work is settled or given back. Throws on a second call. */
  run(signal: AbortSignal): Promise<void>
  health(): EngineHealth
  lag(): EngineLag
  /** Set if no work is left now, with the time of the next due document; undefined while work is left. */
  rest(): Rest | undefined
  /** As `rest`, but set only if attempts remain and all of them wait for a turn or a limit. */
  heldBack(): Rest | undefined
  /** Counters of this engine and of all engines that share them. */
  readonly counts: Counters
}

/** Maximum time after the grace period to stop handlers and save their outcomes; again for the last checkpoint. */
const LAST_WORDS_MS = 2000
/** Maximum time of a visit's last checkpoint while the sidecar runs: without it, the next visit reads changes again. */
const VISIT_SAVE_MS = 60_000
/** The engine waits for a document that is due within this time. */
const SOON_MS = 5000

export function createEngine(options: EngineOptions): Engine {
  const { database, clock, visit, graceMs = 10_000 } = options
  const hard = new AbortController()
  const soft = new AbortController()
  const closing = new AbortController()
  let started = false
  const parts = createParts(options, hard.signal, closing.signal)
  const { counts, claims, delayQueue, dispatch, backlog, rowDispatcher, watch, resync, deletions } = parts

  const isReading = () => !watch.atEnd || rowDispatcher.isReading || resync.isBusy || deletions.isBusy

  function rest(): Rest | undefined {
    return isReading() || dispatch.attempts.size + backlog.size > 0 ? undefined : untilDue()
  }

  function untilDue(): Rest | undefined {
    const nextAt = delayQueue.nextAt()
    const isSoon = delayQueue.nextKept() < clock.now() + SOON_MS
    return isSoon ? undefined : { nextAt: nextAt === Infinity ? undefined : nextAt }
  }

  async function finish(): Promise<void> {
    const left = visit && rest()
    closing.abort(new Error('the sidecar stops'))
    const settled = await withTimeout(clock, graceMs, dispatch.attempts.whenIdle())
    if (!settled) {
      dispatch.attempts.stop(new Error('the sidecar stops'))
      await withTimeout(clock, LAST_WORDS_MS, dispatch.attempts.whenIdle())
    }
    const saving = watch.saveCheckpoint(hard.signal, left)
    if (visit) await withTimeout(clock, VISIT_SAVE_MS, saving, visit.stopping).catch(() => undefined)
    await withTimeout(clock, LAST_WORDS_MS, saving)
    hard.abort(new Error('the sidecar has stopped'))
  }

  return {
    async run(signal) {
      if (started) throw new Error(`the engine of ${database.name} was started twice`)
      started = true
      const kept = claims.keep(hard.signal)
      const stop = () => soft.abort(signal.reason)
      const stopListening = onAbort(signal, stop)
      if (signal.aborted) stop()
      const loops = [watch, rowDispatcher, backlog, deletions].map((loop) => loop.run(soft.signal))
      loops.push(resync.runDelayed(soft.signal), resync.runPeriodically(soft.signal))
      try {
        await Promise.race(loops) // each runs until the signal aborts; a bug in one ends all
      } catch (thrown) {
        if (!signal.aborted) throw thrown
      } finally {
        stop()
        await Promise.allSettled(loops)
        await finish()
        await kept
        stopListening()
      }
    },
    health: () => ({
      database: database.name,
      following: visit ? watch.trouble === undefined : watch.following,
      inFlight: dispatch.attempts.size,
      taken: dispatch.attempts.started,
      rewinds: counts.feed.rewound,
      contended: counts.contended,
      conflicts: counts.conflicts.resolved,
      trouble: watch.trouble?.code,
    }),
    lag: () => ({
      unread: watch.lag.changes,
      unsettled: watch.unsettled,
      behindMs: watch.lag.ms,
      slowHandlers: backlog.size,
    }),
    rest,
    heldBack: () => (!isReading() && dispatch.attempts.allWait ? untilDue() : undefined),
    counts,
  }
}
