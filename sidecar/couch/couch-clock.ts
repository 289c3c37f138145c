import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'

/** Receives the `Date` header of each answer that a client gets. */
export interface DateReceiver {
  /** Monotonic milliseconds. */
  ticks(): number
  /** @param date the `Date` header of an answer. @param sentAt when its request was sent, in ticks */
  receive(date: string, sentAt: number): void
}

/** Maximum age of a `Date` header: it has whole seconds only, and CouchDB sets it once a second. */
const PRECISION_MS = 2000
/** Consecutive answers that must differ before the clock changes: a proxy with a wrong clock may send one. */
const IN_A_ROW = 2
/** Minimum change of the difference that is logged. */
const NOTABLE_MS = 10_000

/**
 * CouchDB's time, from the `Date` headers of its answers. All workers write times into documents by this clock: the
 * times agree even if a machine's clock is wrong. The clock starts with the machine's time, but does not jump with it.
 * It changes only if an answer proves it wrong, given the response time and the two-second precision of `Date`. After
 * a change it is never ahead of CouchDB's. Due work may at first be up to two seconds late, but never early.
 */
export function createCouchClock(clock: Clock, log: Logger): Clock & DateReceiver {
  const offset = () => clock.now() - clock.ticks()
  let ours = offset()
  let logged = 0
  let agreed: string | undefined
  let inARow = 0

  function logDifference(): void {
    const differenceMs = Math.round(offset() - ours)
    if (Math.abs(differenceMs - logged) < NOTABLE_MS) return
    logged = differenceMs
    const couchTime = isoTime(ours + clock.ticks())
    log.warn(
      { differenceMs, couchTime },
      "the clock of this machine differs from CouchDB's; the sidecar uses CouchDB's",
    )
  }

  return {
    now: () => ours + clock.ticks(),
    ticks: () => clock.ticks(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    receive(date, sentAt) {
      if (date === agreed) {
        inARow = 0
        return
      }
      const said = Date.parse(date)
      if (Number.isNaN(said)) return
      const [least, most] = [said - clock.ticks(), said + PRECISION_MS - sentAt]
      if (ours >= least && ours <= most) {
        agreed = date
        inARow = 0
      } else if (++inARow >= IN_A_ROW) {
        ours = least
        inARow = 0
        logDifference()
      }
    },
  }
}
