import { systemClock, type Clock } from '../core/clock.ts'
import { onAbort } from '../core/on-abort.ts'

/** The system's clock, which can be set forward: who sleeps wakes when it is time by it. */
export interface ShiftedClock extends Clock {
  /** How far it is ahead of the system's, milliseconds. */
  readonly aheadMs: number
  advance(ms: number): void
}

/** No timer of Node lasts longer. */
const LONGEST_MS = 2_147_483_647

export function createShiftedClock(): ShiftedClock {
  const sleepers = new Set<() => void>()
  let aheadMs = 0
  const clock: ShiftedClock = {
    get aheadMs() {
      return aheadMs
    },
    now: () => systemClock.now() + aheadMs,
    ticks: () => systemClock.ticks() + aheadMs,
    sleep(ms, signal) {
      const until = clock.ticks() + ms
      return new Promise((resolve, reject) => {
        let timer: NodeJS.Timeout | undefined
        const end = () => {
          clearTimeout(timer)
          sleepers.delete(look)
          stopListening()
        }
        const abort = () => {
          end()
          reject(signal.reason as Error)
        }
        const look = () => {
          clearTimeout(timer)
          const leftMs = until - clock.ticks()
          if (leftMs > 0) {
            timer = setTimeout(look, Math.min(leftMs, LONGEST_MS))
            return
          }
          end()
          resolve()
        }
        const stopListening = onAbort(signal, abort)
        if (signal.aborted) return abort()
        sleepers.add(look)
        look()
      })
    },
    advance(ms) {
      aheadMs += ms
      for (const look of [...sleepers]) look()
    },
  }
  return clock
}
