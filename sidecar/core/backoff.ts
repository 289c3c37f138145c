/** Delays between tries, in milliseconds. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

/** A source of numbers in [0, 1), such as `Math.random`. */
export type Random = () => number

const FLOOR_MS = 50

/**
 * Returns the wait after `attempt` failures (1 or more), with "full jitter": a random time below a ceiling. The ceiling
 * doubles with each failure. Clients that failed together thus do not return together. At least 50 ms: a hot loop does
 * not help.
 */
export function fullJitter(backoff: Backoff, attempt: number, random: Random): number {
  return Math.max(FLOOR_MS, Math.round(random() * ceilingOf(backoff, attempt)))
}

/**
 * Returns the wait for work with a limited number of attempts: the ceiling, and up to a quarter more. With full jitter,
 * a row of short waits could use up a day's attempts in an afternoon.
 */
export function growingWait(backoff: Backoff, attempt: number, random: Random): number {
  return Math.max(FLOOR_MS, Math.round(ceilingOf(backoff, attempt) * (1 + random() / 4)))
}

const ceilingOf = ({ baseMs, capMs }: Backoff, attempt: number): number =>
  Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30))
