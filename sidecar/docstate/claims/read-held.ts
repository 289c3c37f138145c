import type { Backoff, Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Semaphore } from '../../core/semaphore.ts'
import type { AdaptiveTimeout } from '../../couch/adaptive-timeout.ts'
import type { CallOptions } from '../../couch/database.ts'
import { withRetries } from '../../couch/with-retries.ts'

/**
 * Asks CouchDB about a document that this worker holds or may hold, until CouchDB answers. The claim ages meanwhile, so
 * the question goes before requests that begin new work, and is repeated soon. Each question needs a permit, as a write
 * does. One database gets few at once: if it does not answer, claims in other databases are still renewed. `isHeld`:
 * the document is surely held; such questions go before uncertain ones.
 */
export type ReadHeld = <T>(question: (options: CallOptions) => Promise<T>, isHeld?: boolean) => Promise<T>

export interface ReadHeldOptions {
  /** Permits, shared with the writers of all databases. */
  readonly turns: Semaphore
  readonly timeout: AdaptiveTimeout
  /** The configured lease, milliseconds. */
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
}

const TOGETHER = 4

/**
 * Waits between tries that concern a claim: at most a sixth of the configured lease, since little of it may be left when
 * CouchDB is back.
 */
export const heldBackoff = (leaseMs: number): Backoff => ({ baseMs: 200, capMs: Math.min(15_000, leaseMs / 6) })

export function createReadHeld({ turns, timeout, leaseMs, clock, random, signal }: ReadHeldOptions): ReadHeld {
  const ours = new Semaphore(() => TOGETHER)
  const retries = { clock, random, signal, backoff: heldBackoff(leaseMs) }

  async function ask<T>(question: (options: CallOptions) => Promise<T>): Promise<T> {
    let answered: (() => void) | undefined
    const onSent = () => (answered = timeout.sent()) // of several requests the last one counts
    try {
      return await question({ first: true, timeoutMs: timeout.timeoutMs, signal, onSent })
    } finally {
      answered?.()
    }
  }

  return (question, isHeld) =>
    withRetries(() => ours.run(() => turns.run(() => ask(question), true, signal), isHeld, signal), retries)
}
