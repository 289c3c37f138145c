import { Cron as Croner } from 'croner'

/** When something is due, again and again, in a time zone with its daylight saving. Times in milliseconds since the epoch. */
export interface Cron {
  /** The first due time after this. */
  readonly nextAfter: (ms: number) => number
  /** The last due time up to this; undefined where there was none. */
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

/** Where a year has no such day, as February 30th. */
const NEVER = 'a cron that is due some time'

/**
 * Five fields (minute, hour, day, month, weekday), with names, ranges, steps, `L`, `W` and `#`; or `@hourly`, `@daily` and the like.
 * Of an hour that is skipped a time is due when the clocks have gone on; of one that comes twice a time of day is due once, while what is
 * due each hour or minute goes on.
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
        if (next === null) throw new Error(`${cron} is due no more`)
        return next.getTime()
      },
      lastUntil: (ms) => croner.previousRuns(1, new Date(ms + 1))[0]?.getTime(),
    }
  } catch {
    return FIELDS
  }
}

const FIELDS = "the five fields of a cron, such as '0 6 * * *' for six in the morning"
