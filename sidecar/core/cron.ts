import { Cron as Croner } from 'croner'

/** Due times that repeat, in a time zone with daylight saving. Milliseconds since the epoch. */
export interface Cron {
  /** First due time after `ms`. */
  readonly nextAfter: (ms: number) => number
  /** Last due time up to `ms`; undefined if none exists. */
  readonly lastUntil: (ms: number) => number | undefined
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** For a date that no year has, such as February 30th. */
const NEVER = 'a cron expression with at least one due time'

/**
 * Parses five fields (minute, hour, day, month, weekday), with names, ranges, steps, `L`, `W` and `#`. Also accepts
 * `@hourly`, `@daily` and the like. A time in a skipped hour is due when the clocks have changed. In a repeated hour, a
 * time of day is due once, and hourly or more frequent times continue.
 *
 * @param timeZone of the IANA database, such as `Europe/Berlin`
 * @returns the cron, or what was expected instead
 */
export function parseCron(cron: string, timeZone: string): Cron | string {
  if (!isTimeZone(timeZone)) return 'a time zone of the IANA database, such as Europe/Berlin'
  try {
    const croner = new Croner(cron, { timezone: timeZone, paused: true, mode: '5-part' })
    if (croner.getOnce() !== null) return FIELDS
    if (croner.nextRun(new Date(0)) === null) return NEVER
    return {
      nextAfter(ms) {
        const next = croner.nextRun(new Date(ms))
        if (next === null) throw new Error(`${cron} has no further due time`)
        return next.getTime()
      },
      lastUntil: (ms) => croner.previousRuns(1, new Date(ms + 1))[0]?.getTime(),
    }
  } catch {
    return FIELDS
  }
}

const FIELDS = "the five fields of a cron expression, such as '0 6 * * *' for six in the morning"
