import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { withTimeout } from '../../core/timeout.ts'
import type { Database } from '../../couch/database.ts'
import { CouchError } from '../../couch/errors.ts'
import type { Part } from '../../workers/sharing.ts'
import type { DispatchTable } from '../assess.ts'
import type { UndeclaredCount } from '../undeclared.ts'
import type { Backlog } from './backlog.ts'
import type { DueQueue } from './due.ts'
import type { Look } from './look.ts'
import { createSweep } from './sweep.ts'

export interface RoundsOptions {
  readonly database: Database
  readonly table: () => DispatchTable
  readonly part: Part
  readonly due: DueQueue
  readonly look: Look
  /** Told of each list. */
  readonly undeclared: (counts: readonly UndeclaredCount[]) => void
  readonly backlog: Backlog
  /** Between two sweeps. Milliseconds. */
  readonly sweepMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Resolves when the feed has been read to its end, and what came is done. The first sweep does not wait for ever. */
  readonly whenCaughtUp: () => Promise<unknown>
  /** Whether it begins with a sweep, or somebody knows that there is nothing to be found. */
  readonly sweepFirst: boolean
  /** Called when the database is gone. */
  readonly prepare: (signal: AbortSignal) => Promise<void>
}

const FIRST_SWEEP_MS = 60_000
/** Between tries of the first one. */
const UNLISTED_MS = 5000

/** The looks that no change asks for: at documents whose time has come, and through the list. Until the signal. */
export interface Rounds {
  /** Whether one of them is under way, or the first is still to come. */
  readonly isBusy: boolean
  /** Another try, a state's end, a lease of somebody else. */
  lookAtDue(signal: AbortSignal): Promise<void>
  /** Every minute, and when our part in the documents has changed. */
  sweepNowAndThen(signal: AbortSignal): Promise<void>
  /** There may be documents that no change will tell of: through the list at once. */
  listSoon(): void
}

export function createRounds(options: RoundsOptions): Rounds {
  const { database, table, part, due, look, backlog, sweepMs, clock, random, log } = options
  const { whenCaughtUp, sweepFirst, prepare, undeclared } = options
  let looks = 0
  let isListed = !sweepFirst
  let wake = () => {}
  const sweep = createSweep({
    database,
    table,
    part,
    clock,
    undeclared,
    horizonMs: sweepMs * 2,
    look: lookAtPage,
    later: (at) => due.later(at),
  })

  /** Of a lane that is full the backlog reads the rest. */
  async function lookAtPage(ids: readonly string[], anyway: boolean, signal: AbortSignal): Promise<boolean> {
    const left = await look(ids, (lane) => (backlog.add(lane), false), signal, anyway)
    return left.length === 0
  }

  /** How long it may be until the next. */
  async function sweepOnce(signal: AbortSignal): Promise<number> {
    looks += 1
    const later = due.forgetLater()
    const wasListed = isListed
    isListed = true // unless somebody asks for another meanwhile
    try {
      await sweep(signal)
      log.debug('swept')
      return sweepMs
    } catch (thrown) {
      due.later(later)
      isListed &&= wasListed
      if (!(thrown instanceof CouchError)) throw thrown
      log.warn({ code: thrown.code, reason: thrown.message }, 'could not list the documents in handled states')
      if (thrown.code === 'not_found') await prepare(signal)
      return isListed ? sweepMs : Math.min(sweepMs, UNLISTED_MS)
    } finally {
      looks -= 1
    }
  }

  return {
    get isBusy() {
      return looks > 0 || !isListed
    },

    async lookAtDue(signal) {
      for (;;) {
        const ids = await due.next(signal)
        looks += 1
        try {
          await look(ids, (lane) => (backlog.add(lane), true), signal)
        } catch (thrown) {
          if (!(thrown instanceof CouchError)) throw thrown
          for (const id of ids) due.add(id, clock.now() + 1000 + random() * 4000)
        } finally {
          looks -= 1
        }
      }
    },

    async sweepNowAndThen(signal) {
      part.onChange(() => wake(), signal)
      if (sweepFirst) await withTimeout(clock, FIRST_SWEEP_MS, whenCaughtUp(), signal)
      for (let isDue = sweepFirst; ; isDue = true) {
        signal.throwIfAborted()
        const moved = new Promise<void>((resolve) => (wake = resolve)) // before the sweep, which it may outdate
        const nextMs = isDue ? await sweepOnce(signal) : sweepMs
        await withTimeout(clock, nextMs * (0.8 + random() * 0.4), moved, signal)
      }
    },

    listSoon() {
      isListed = false
      wake()
    },
  }
}
