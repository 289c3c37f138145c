/** How long to wait between tries. Times in milliseconds. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

/** A source of numbers in [0, 1), as `Math.random`. */
export type Random = () => number

const FLOOR_MS = 50

/**
 * The wait before try number `attempt + 1`, after `attempt` failures (1 or more): "full jitter", a random time below
 * a ceiling that doubles with each failure, so that clients that failed together do not come back together.
 * Never below 50 ms: a hot loop does not help.
 */
export function fullJitter(backoff: Backoff, attempt: number, random: Random): number {
  return Math.max(FLOOR_MS, Math.round(random() * ceilingOf(backoff, attempt)))
}

/**
 * The same for something that has a number of tries: at least the ceiling, and up to a quarter more. With full jitter a
 * row of short waits would use up the tries of a day in an afternoon.
 */
export function growingWait(backoff: Backoff, attempt: number, random: Random): number {
  return Math.max(FLOOR_MS, Math.round(ceilingOf(backoff, attempt) * (1 + random() / 4)))
}

const ceilingOf = ({ baseMs, capMs }: Backoff, attempt: number): number =>
  Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30))
