import { onAbort } from '../../sidecar/core/on-abort.ts'
import type { Clock } from '../../sidecar/core/clock.ts'

export interface ManualClock extends Clock {
  /** The number of running sleeps. */
  readonly sleeping: number
  /**
   * Advances the clock by `ms` and ends all due sleeps in the order of their times, including sleeps that start within
   * that time. Resolves when the woken code has run.
   */
  advance(ms: number): Promise<void>
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** A clock that advances only by the test. `start` is in milliseconds since the epoch. */
export function createManualClock(start = Date.UTC(2030, 0, 1)): ManualClock {
  let now = start
  let sleepers: Sleeper[] = []

  const nextDue = (until: number) =>
    sleepers
      .filter(({ at }) => at <= until)
      .reduce<Sleeper | undefined>((a, b) => (a && a.at <= b.at ? a : b), undefined)

  return {
    now: () => now,
    ticks: () => now - start,
    get sleeping() {
      return sleepers.length
    },
    async sleep(ms, signal) {
      signal.throwIfAborted()
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          sleepers = sleepers.filter((other) => other !== sleeper)
          stopListening()
        }
        const sleeper = { at: now + ms, wake: () => (leave(), resolve()) }
        const stopListening = onAbort(signal, () => (leave(), reject(signal.reason as Error)))
        sleepers.push(sleeper)
      })
    },
    async advance(ms) {
      const until = now + ms
      for (let sleeper = nextDue(until); sleeper; sleeper = nextDue(until)) {
        now = Math.max(now, sleeper.at)
        sleeper.wake()
        await turn()
      }
      now = until
      await turn()
    },
  }
}

/** Runs all code that waits only for promises and the event loop. */
async function turn(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise(setImmediate)
}
