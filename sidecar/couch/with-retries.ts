import { fullJitter, type Backoff, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { CouchError, type Retry } from './couch-errors.ts'

export interface RetryOptions {
  readonly clock: Clock
  readonly random: Random
  /** Stops the retries; `withRetries` then throws its reason. */
  readonly signal: AbortSignal
  /** When to retry an error. Default: the retry table. */
  readonly retryOf?: (error: CouchError) => Retry
  /** Waits between the tries. Default: up to 15 s. */
  readonly backoff?: Backoff
  /** Called before each wait, for the log. */
  readonly onTrouble?: (error: CouchError, retryInMs: number) => void
}

const BACKOFF = { baseMs: 200, capMs: 15_000 }
const SLOWLY_MS = 30_000

/** Calls `work` until it succeeds. Retries transient errors and throws all others. */
export async function withRetries<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, random, signal, retryOf = ({ retry }) => retry, backoff = BACKOFF, onTrouble } = options
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (thrown) {
      const retry = thrown instanceof CouchError ? retryOf(thrown) : 'never'
      if (!(thrown instanceof CouchError) || retry === 'never') throw thrown
      const retryInMs = retry === 'slowly' ? SLOWLY_MS : fullJitter(backoff, tries, random)
      onTrouble?.(thrown, retryInMs)
      await clock.sleep(retryInMs, signal)
    }
  }
}
