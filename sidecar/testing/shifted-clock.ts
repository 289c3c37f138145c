import { LONGEST_TIMER_MS, systemClock, type Clock } from '../core/clock.ts'
import { onAbort } from '../core/on-abort.ts'

/** The system's clock, which a test can set forward. Each sleep ends by this clock. */
export interface ShiftedClock extends Clock {
  /** How far this clock is ahead of the system's, milliseconds. */
  readonly aheadMs: number
  advance(ms: number): void
}

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
            timer = setTimeout(look, Math.min(leftMs, LONGEST_TIMER_MS))
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
