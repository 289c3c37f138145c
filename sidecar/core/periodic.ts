import type { Logger } from 'pino'
import type { Random } from './backoff.ts'
import type { Clock } from './clock.ts'
import { SidecarError } from './errors.ts'
import { untilAny } from './until-any.ts'

export interface PeriodicRunOptions {
  /** A `SidecarError` is logged, and the work runs again soon. Any other error is a bug and ends the run. */
  readonly sweep: (signal: AbortSignal) => Promise<void>
  /** Pause between two runs, milliseconds. May change. */
  readonly everyMs: () => number
  /**
   * If set, runs begin at multiples of `everyMs` after this time, in the clock's ticks. Several periodic runs of a
   * process are then due together. Otherwise random jitter spreads them.
   */
  readonly alignedTo?: number | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Runs the work at once, then periodically, and on demand. */
export interface PeriodicRun {
  run(signal: AbortSignal): Promise<void>
  /** Runs the work again as soon as the current run ends. For callers that may have missed a change. */
  soon(): void
}

const AGAIN_MS = 5000
/** A long run lengthens the pause: runs take at most a tenth of the time. A single long run does not count. */
const REST = 10

export function createPeriodicRun({ sweep, everyMs, alignedTo, clock, random, log }: PeriodicRunOptions): PeriodicRun {
  let waiting = new AbortController()

  async function sweepOnce(signal: AbortSignal): Promise<boolean> {
    try {
      await sweep(signal)
      return true
    } catch (thrown) {
      if (signal.aborted) return false
      if (!(thrown instanceof SidecarError)) throw thrown
      log.debug({ code: thrown.code, reason: thrown.message }, 'the periodic run failed; it runs again soon')
      return false
    }
  }

  /** Delay to the next aligned time. An extra run (`soon`) postpones none; a long one keeps most of its pause. */
  function aligned(pauseMs: number, since: number): number {
    const [now, every] = [clock.ticks(), everyMs()]
    const earliest = now + Math.max(every * 0.1, pauseMs - every * 0.9)
    return since + Math.ceil((earliest - since) / every) * every - now
  }

  return {
    async run(signal) {
      let tookBefore = Infinity
      while (!signal.aborted) {
        waiting = new AbortController() // before the run: a call of `soon` during the run must count
        const began = clock.ticks()
        const done = await sweepOnce(signal)
        const took = clock.ticks() - began
        const pauseMs = done ? Math.max(everyMs(), Math.min(took, tookBefore) * REST) : Math.min(AGAIN_MS, everyMs())
        if (done) tookBefore = took
        const waitMs = alignedTo === undefined ? pauseMs * (0.9 + random() * 0.2) : aligned(pauseMs, alignedTo)
        const sleep = (until: AbortSignal) => clock.sleep(waitMs, until)
        await untilAny([signal, waiting.signal], sleep).catch(() => undefined)
      }
    },
    soon: () => waiting.abort(),
  }
}
