import { fullJitter, type Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { Attempt } from '../attempt.ts'
import type { AskHeld } from './ask-held.ts'
import { docOf, holdsClaim, judgeClaim, takingOut } from './rivals.ts'
import type { WriteDoc, WriteResult } from '../write-doc.ts'

export interface ContestOptions {
  readonly database: Database
  readonly writeDoc: WriteDoc
  readonly askHeld: AskHeld
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
}

/**
 * Finds out about a claim on `base` that was stored below the quorum, or whose answer did not come: it may be one of
 * several, one of which may have won. `renewed` makes our claim anew.
 */
export type Contest = (attempt: Attempt, base: string, renewed: () => Doc) => Promise<WriteResult>

/** How much of a lease to wait beside another's claim: when the lease is over, a third worker may find that claim dead. */
const SHARE_OF_LEASE = 0.9

/**
 * A 202 has not won, and must not be acted on. All copies are asked for all leaves:
 *
 * - another worker's claim or what came of it stands beside ours: the one that is not to stay leaves the tree;
 * - there is none: our claim is renewed. A majority of copies that has it (201) lets no other claim on the same revision
 *   win any more, and all that had won before would be seen in another look at all copies: if there is none, it is ours.
 *
 * Without a quorum nothing can be proven, and nothing is given back either: on the copies that are away the
 * revision is still free, and what we let go of here could be run beside a claim won there.
 */
export function createContest(options: ContestOptions): Contest {
  const { database, writeDoc, askHeld, leaseMs, clock, random, signal } = options
  const backoff = { baseMs: 200, capMs: leaseMs / 3 } // each try renews the claim
  const ask: AskHeld = (question, isHeld) => withRetries(() => askHeld(question, isHeld), { clock, random, signal })

  return async (attempt, base, renewed) => {
    const until = clock.ticks() + leaseMs * SHARE_OF_LEASE
    let waited = false
    let proven = false
    for (let tries = 1; ; tries++) {
      const leaves = await ask((how) => database.leaves(attempt.id, how), proven)
      const ours = leaves.find((leaf) => !leaf._deleted && holdsClaim(attempt, leaf))
      if (!ours) return { kind: 'lost' }
      attempt.doc = docOf(ours)
      // What is seen now may be what a third worker made of the claim that we waited for: the lease watch decides.
      if (waited && !proven && clock.ticks() >= until) return { kind: 'accepted' }
      switch (judgeClaim(ours, base, leaves)) {
        case 'yield': {
          const kept = leaves.filter((leaf) => !leaf._deleted && leaf !== ours)
          await ask((how) => database.merge(takingOut([ours], kept), how))
          return { kind: 'lost' }
        }
        case 'wait':
          waited = true
          break
        case 'alone': {
          if (proven) return { kind: 'stored' }
          const asked = clock.ticks()
          const outcome = await writeDoc(attempt, renewed())
          if (outcome.kind === 'lost' || outcome.kind === 'refused') return outcome
          if (outcome.kind === 'accepted') break
          attempt.provenAt = asked
          proven = true
          continue
        }
      }
      const pauseMs = fullJitter(backoff, tries, random)
      await clock.sleep(waited && !proven ? Math.min(pauseMs, Math.max(0, until - clock.ticks())) : pauseMs, signal)
    }
  }
}
