import { fullJitter, type Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import type { Attempt } from '../attempt.ts'
import type { ReadHeld } from './read-held.ts'
import { docOf, holdsClaim, judgeClaim, takingOut } from './rivals.ts'
import type { WriteDoc, WriteResult } from '../write-doc.ts'

export interface ContestOptions {
  readonly database: Database
  readonly writeDoc: WriteDoc
  readonly readHeld: ReadHeld
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
}

/**
 * Decides a claim on `base` that was stored below the quorum, or whose answer was lost. Other claims may stand beside
 * it, and one of them may have won. `renewed` builds our claim again.
 */
export type Contest = (attempt: Attempt, base: string, renewed: () => Doc) => Promise<WriteResult>

/**
 * Maximum wait beside a rival claim, as part of a lease. After a whole lease, a third worker may find the rival dead.
 */
const SHARE_OF_LEASE = 0.9

/**
 * A 202 is not a win: a worker must not act on it. The contest reads all leaves from all copies:
 *
 * - Another worker's claim or outcome stands beside ours: the losing leaf is deleted.
 * - Our claim stands alone: it is renewed. After a 201 a majority of copies has it, so no other claim on the same
 *   revision can still win. A second read of all copies shows any claim that won before. If it shows none, ours has
 *   won.
 *
 * Without a quorum the contest can prove nothing, and releases nothing. On unreachable copies the revision is still
 * free. A claim could win on them, and run beside the document released here.
 */
export function createContest(options: ContestOptions): Contest {
  const { database, writeDoc, readHeld, leaseMs, clock, random, signal } = options
  const backoff = { baseMs: 200, capMs: leaseMs / 3 } // each try renews the claim

  return async (attempt, base, renewed) => {
    const until = clock.ticks() + leaseMs * SHARE_OF_LEASE
    let waited = false
    let proven = false
    for (let tries = 1; ; tries++) {
      const leaves = await readHeld((how) => database.leaves(attempt.id, how), proven)
      const ours = leaves.find((leaf) => !leaf._deleted && holdsClaim(attempt, leaf))
      if (!ours) return { kind: 'lost' }
      attempt.doc = docOf(ours)
      // A third worker may have rescued the claim that we waited for: only the lease watch can decide.
      if (waited && !proven && clock.ticks() >= until) return { kind: 'accepted' }
      switch (judgeClaim(ours, base, leaves)) {
        case 'yield': {
          const kept = leaves.filter((leaf) => !leaf._deleted && leaf !== ours)
          await readHeld((how) => database.merge(takingOut([ours], kept), how))
          return { kind: 'lost' }
        }
        case 'wait':
          waited = true
          break
        case 'alone': {
          if (proven) return { kind: 'stored' }
          const sentAt = clock.ticks()
          const outcome = await writeDoc(attempt, renewed())
          if (outcome.kind === 'lost' || outcome.kind === 'refused') return outcome
          if (outcome.kind === 'accepted') break
          attempt.provenAt = sentAt
          proven = true
          continue
        }
      }
      const pauseMs = fullJitter(backoff, tries, random)
      await clock.sleep(waited && !proven ? Math.min(pauseMs, Math.max(0, until - clock.ticks())) : pauseMs, signal)
    }
  }
}
