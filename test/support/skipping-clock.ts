import { systemClock, type Clock } from '../../sidecar/core/clock.ts'

export interface SkippingClock extends Clock {
  /** Sets it forward. Who sleeps is not woken. */
  skip(ms: number): void
}

/** The system's clock, for tests in which nobody wants to wait for what is due in minutes. */
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
