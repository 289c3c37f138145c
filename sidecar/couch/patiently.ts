import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { CouchError } from './errors.ts'

export interface Patience {
  readonly clock: Clock
  readonly random: Random
  /** The end of it; its reason is thrown then. */
  readonly signal: AbortSignal
}

const BACKOFF = { baseMs: 200, capMs: 15_000 }

/** Asks until there is an answer: repeats what the retry table says may pass. Anything else is thrown. */
export async function patiently<T>(ask: () => Promise<T>, { clock, random, signal }: Patience): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (thrown) {
      if (!(thrown instanceof CouchError) || thrown.retry === 'never') throw thrown
      await clock.sleep(fullJitter(BACKOFF, tries, random), signal)
    }
  }
}
