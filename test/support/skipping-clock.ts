import { systemClock, type Clock } from '../../sidecar/core/clock.ts'

export interface SkippingClock extends Clock {
  /** Sets the clock forward. A running sleep does not end. */
  skip(ms: number): void
}

/** The system's clock, for tests that skip minutes of waiting. */
export function createSkippingClock(): SkippingClock {
  let aheadMs = 0
  return {
    now: () => systemClock.now() + aheadMs,
    ticks: () => systemClock.ticks() + aheadMs,
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    skip(ms) {
      aheadMs += ms
    },
  }
}
