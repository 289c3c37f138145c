import type { Logger } from 'pino'
import type { Random } from './backoff.ts'
import type { Clock } from './clock.ts'
import { untilAny } from './until-any.ts'
import { CouchError } from '../couch/errors.ts'

export interface PeriodicRunOptions {
  readonly sweep: (signal: AbortSignal) => Promise<void>
  /** Between two of them, milliseconds. May change. */
  readonly everyMs: () => number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Sweeps at once, then now and then, and whenever there is a reason to think that something was missed. */
export interface PeriodicRun {
  run(signal: AbortSignal): Promise<void>
  /** There is such a reason: again as soon as the one that runs is over. */
  soon(): void
}

const AGAIN_MS = 5000
/** Those that take long come more seldom: they take a tenth of the time. One that took long by chance is forgiven. */
const REST = 10

export function createPeriodicRun({ sweep, everyMs, clock, random, log }: PeriodicRunOptions): PeriodicRun {
  let waiting = new AbortController()

  async function sweepOnce(signal: AbortSignal): Promise<boolean> {
    try {
      await sweep(signal)
      return true
    } catch (thrown) {
      if (signal.aborted) return false
      if (!(thrown instanceof CouchError)) throw thrown
      log.debug({ code: thrown.code, reason: thrown.message }, 'the databases could not be looked at')
      return false
    }
  }

  return {
    async run(signal) {
      let tookBefore = Infinity
      while (!signal.aborted) {
        waiting = new AbortController() // before the sweep, which whoever calls may have outdated
        const began = clock.ticks()
        const done = await sweepOnce(signal)
        const took = clock.ticks() - began
        const pauseMs = done ? Math.max(everyMs(), Math.min(took, tookBefore) * REST) : Math.min(AGAIN_MS, everyMs())
        if (done) tookBefore = took
        const sleep = (until: AbortSignal) => clock.sleep(pauseMs * (0.9 + random() * 0.2), until)
        await untilAny([signal, waiting.signal], sleep).catch(() => undefined)
      }
    },
    soon: () => waiting.abort(),
  }
}
