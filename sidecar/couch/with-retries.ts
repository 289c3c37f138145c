import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { CouchError, type Retry } from './couch-errors.ts'

export interface RetryOptions {
  readonly clock: Clock
  readonly random: Random
  /** The end of it; its reason is thrown then. */
  readonly signal: AbortSignal
  /** What may pass. Default: the retry table. */
  readonly retryOf?: (error: CouchError) => Retry
  /** Called before each wait, for the log. */
  readonly onTrouble?: (error: CouchError, retryInMs: number) => void
}

const BACKOFF = { baseMs: 200, capMs: 15_000 }
const SLOWLY_MS = 30_000

/** Asks until there is an answer: repeats what may pass. Anything else is thrown. */
export async function withRetries<T>(ask: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, random, signal, retryOf = ({ retry }) => retry, onTrouble } = options
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (thrown) {
      const retry = thrown instanceof CouchError ? retryOf(thrown) : 'never'
      if (!(thrown instanceof CouchError) || retry === 'never') throw thrown
      const retryInMs = retry === 'slowly' ? SLOWLY_MS : fullJitter(BACKOFF, tries, random)
      onTrouble?.(thrown, retryInMs)
      await clock.sleep(retryInMs, signal)
    }
  }
}
