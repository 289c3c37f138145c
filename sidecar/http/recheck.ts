import { createAlarms, type Alarm } from '../core/alarms.ts'
import type { Clock } from '../core/clock.ts'
import { CouchError } from '../couch/couch-errors.ts'

/**
 * Checks periodically, until stopped, whether a reader may still receive an endless answer. Ends the answer when
 * `check` throws, except on a `CouchError`: then CouchDB cannot be reached.
 */
export type Recheck = (check: () => Promise<unknown>, end: () => void) => Alarm

export interface RecheckOptions {
  readonly clock: Clock
  readonly everyMs: number
}

export function createRecheck({ clock, everyMs }: RecheckOptions): Recheck {
  const alarms = createAlarms(clock)
  return (check, end) =>
    alarms.set(everyMs, () => {
      check().catch((thrown: unknown) => {
        if (!(thrown instanceof CouchError)) end()
      })
    })
}
