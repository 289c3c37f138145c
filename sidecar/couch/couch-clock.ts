import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'

/** What a client tells of the answers that it gets. */
export interface HearsDates {
  /** Milliseconds that never jump. */
  ticks(): number
  /** @param date the `Date` of an answer. @param sentAt when it was asked for, in ticks */
  heard(date: string, sentAt: number): void
}

/** Of an answer that was made within one second: `Date` has no parts of it. */
const PRECISION_MS = 1000
/** So many answers in a row have to say that it is another time: one may come from a proxy that is wrong. */
const IN_A_ROW = 2
/** A difference that is told. */
const NOTABLE_MS = 10_000

/**
 * The time as CouchDB has it, by the `Date` of its answers, so that all workers mean the same by the times that they write
 * in documents, even where the clock of a machine is wrong. It begins with this machine's, is changed only when that
 * cannot be right, by the time that an answer took and the second that `Date` leaves open, and does not jump with this machine's.
 * Once changed it is never ahead of CouchDB's: what is due is late by up to a second, at first, and not early.
 */
export function createCouchClock(clock: Clock, log: Logger): Clock & HearsDates {
  const offset = () => clock.now() - clock.ticks()
  let ours = offset()
  let told = 0
  let agreed: string | undefined
  let inARow = 0

  function tell(): void {
    const differenceMs = Math.round(offset() - ours)
    if (Math.abs(differenceMs - told) < NOTABLE_MS) return
    told = differenceMs
    const couchTime = isoTime(ours + clock.ticks())
    log.warn({ differenceMs, couchTime }, "the clock of this machine is not CouchDB's: CouchDB's is used")
  }

  return {
    now: () => ours + clock.ticks(),
    ticks: () => clock.ticks(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    heard(date, sentAt) {
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
        tell()
      }
    },
  }
}
