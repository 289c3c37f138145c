import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { Attempt } from '../attempt.ts'
import { judgeOutcome, takingOut } from './rivals.ts'

export interface TidyOptions {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
}

/**
 * Deletes the losing leaves of a race. The race follows a write on `base`, without a claim, that was stored below the
 * quorum. True if our leaf was deleted.
 */
export type Tidy = (attempt: Attempt, base: StoredDoc) => Promise<boolean>

export function createTidy({ database, clock, random, signal }: TidyOptions): Tidy {
  const retried = <T>(question: () => Promise<T>) => withRetries(question, { clock, random, signal })

  return async (attempt, base) => {
    const leaves = await retried(() => database.leaves(attempt.id, { signal }))
    const ours = leaves.find(({ _rev }) => _rev === attempt.doc._rev)
    const out = ours ? judgeOutcome(ours, base, leaves) : []
    if (!ours || out.length === 0) return false
    const kept = leaves.filter((leaf) => !leaf._deleted && !out.includes(leaf))
    await retried(() => database.merge(takingOut(out, kept), { signal }))
    return out.includes(ours)
  }
}
