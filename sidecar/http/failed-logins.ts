import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/clock.ts'

export interface FailedLogins {
  /** How long until a login of this key may be tried, milliseconds; 0: now. */
  waitMs(key: string, most: number): number
  add(key: string): void
}

/** CouchDB forgets failures as old as that. */
export const COUNTED_MS = 300_000
/** Beyond that the keys that failed longest ago are forgotten. */
const MAX_KEYS = 10_000

/** Counts the failed logins of the last five minutes by name, and by client. In memory, for each process by itself. */
export function createFailedLogins(clock: Clock): FailedLogins {
  /** By the clock's ticks, the oldest first. */
  const failures = new LRUCache<string, readonly number[]>({ max: MAX_KEYS })
  const recent = (key: string) => (failures.peek(key) ?? []).filter((at) => clock.ticks() - at < COUNTED_MS)

  return {
    waitMs(key, most) {
      const times = recent(key)
      return times.length < most ? 0 : times.at(-most)! + COUNTED_MS - clock.ticks()
    },
    add(key) {
      failures.set(key, [...recent(key), clock.ticks()])
    },
  }
}
