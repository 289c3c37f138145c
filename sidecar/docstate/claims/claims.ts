import { isoTime, type Clock } from '../../core/clock.ts'
import { Reject } from '../../core/errors.ts'
import type { Contest } from './contest.ts'
import type { Lease } from './lease.ts'
import { claimed, released, versionOf } from '../outcome-documents.ts'
import type { Attempt } from '../attempt.ts'
import type { WriteDoc, WriteResult } from '../write-doc.ts'
import type { Claim } from '../types.ts'

export interface Claims {
  /**
   * Tries to win the document for this attempt. The claim says that the handler begins at once. Calls `onContested` if
   * winning may take long: later claims then do not say so. Calls `onUnsure` if the answer to the claim is lost; `take`
   * then asks again.
   */
  take(attempt: Attempt, onContested: () => void, onUnsure: () => void): Promise<WriteResult>
  /** Writes into the claim that the handler begins, unless the claim says so. False if the write failed. */
  begin(attempt: Attempt): Promise<boolean>
  /** Releases the claim and leaves the document untouched: another worker may take the document at once. */
  release(attempt: Attempt): Promise<void>
  /** Renews the claims that are due, until the signal aborts. */
  keep(signal: AbortSignal): Promise<void>
  /** Whether the handler may begin: the claim is ours, with enough of its lease left. If not, release the claim. */
  proven(attempt: Attempt): boolean
  /** Stops renewing the claim. */
  drop(attempt: Attempt): void
}

export interface ClaimsOptions {
  readonly writeDoc: WriteDoc
  readonly contest: Contest
  readonly worker: string
  readonly lease: Pick<Lease, 'ms' | 'configuredMs'>
  readonly clock: Clock
}

/** Part of a lease that its holder relies on: the rest is for watchers whose clocks run faster. */
const BELIEVED = 0.9
/** Part of a lease after which a claim is renewed at the latest. */
export const DUE = 1 / 3
/** Part of a lease after which a claim is renewed together with one that is due: they share a request. */
const EARLY = 0.3

/** Abort reason of `ctx.signal` when this worker no longer holds the document. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
  readonly code = 'claim_lost'
}

/** Checks the result of a handler's own write. Throws `ClaimLost`, or `Reject` with CouchDB's code and reason. */
export function requireStored({ id }: Attempt, outcome: WriteResult): void {
  if (outcome.kind === 'lost') throw new ClaimLost(`${id} has changed while its handler ran`)
  if (outcome.kind === 'refused') throw new Reject(outcome.failure.code, outcome.failure.reason)
}

/**
 * Wins and renews claims. The document's revision lets only one worker make the write that wins. A server's 201 means
 * won, 409 lost; a cluster's 202 means contested. A claim is renewed after a third of its lease, or a little earlier
 * together with another one. After nine tenths of a lease without a confirmed renewal, the worker treats the claim as
 * lost and aborts its handler.
 */
export function createClaims(options: ClaimsOptions): Claims {
  const { writeDoc, contest, worker, lease, clock } = options
  const held = new Set<Attempt>()
  const renewing = new Set<Attempt>()

  const claimOf = (attempt: Attempt): Claim => ({
    worker,
    token: attempt.token,
    at: isoTime(clock.now()),
    lease_ms: lease.ms,
    begun: attempt.begun,
    ...versionOf(attempt),
  })

  async function renew(attempt: Attempt): Promise<void> {
    renewing.add(attempt)
    const outcome = await attempt
      .mutex(() => (held.has(attempt) && !attempt.left ? writeRenewal(attempt) : undefined))
      .finally(() => renewing.delete(attempt))
    if (outcome?.kind === 'lost') lose(attempt, `${attempt.id} was taken over by another worker`)
  }

  async function writeRenewal(attempt: Attempt): Promise<WriteResult> {
    const [sentAt, claim] = [clock.ticks(), claimOf(attempt)]
    const renewed = () => attempt.holds(sentAt, claim.lease_ms)
    const endsEarlier = sentAt + claim.lease_ms * BELIEVED < attempt.provenAt! + attempt.leaseMs! * BELIEVED
    if (endsEarlier) renewed() // without an answer, it may be stored
    const outcome = await writeDoc(attempt, claimed(attempt, claim))
    if (outcome.kind === 'stored') renewed()
    return outcome
  }

  /** Checks one claim. Returns the maximum delay before the next check, milliseconds. */
  function check(attempt: Attempt): number {
    const age = clock.ticks() - attempt.provenAt!
    const believedMs = attempt.leaseMs! * BELIEVED
    const dueIn = (part: number) => Math.min(lease.ms, attempt.leaseMs!) * part - age
    if (attempt.left) held.delete(attempt)
    else if (age >= believedMs) lose(attempt, `no renewal of the claim on ${attempt.id} succeeded in time`)
    else if (dueIn(EARLY) <= 0 && !renewing.has(attempt)) {
      renew(attempt).catch(() => undefined) // its retries ended: the age of the claim decides
    }
    return dueIn(DUE) > 0 ? dueIn(DUE) : believedMs - age
  }

  function lose(attempt: Attempt, why: string): void {
    held.delete(attempt)
    attempt.stop(new ClaimLost(why))
  }

  return {
    async take(attempt, onContested, onUnsure) {
      const base = attempt.doc._rev
      let leaseMs = lease.ms
      const renewed = () => {
        const claim = claimOf(attempt)
        leaseMs = claim.lease_ms
        return claimed(attempt, claim)
      }
      attempt.provenAt = clock.ticks()
      attempt.begun = true
      const first = await writeDoc(attempt, renewed(), { onUnsure })
      if (first.kind === 'accepted') {
        attempt.begun = false
        onContested()
      }
      const outcome = first.kind === 'accepted' ? await contest(attempt, base, renewed) : first
      if (outcome.kind === 'stored') {
        attempt.holds(attempt.provenAt, leaseMs)
        held.add(attempt)
      }
      return outcome
    },

    async begin(attempt) {
      if (attempt.begun) return true
      attempt.begun = true
      const { kind } = await attempt.mutex(() => writeRenewal(attempt))
      return kind === 'stored'
    },

    async release(attempt) {
      held.delete(attempt)
      await attempt.mutex(() => writeDoc(attempt, released(attempt)))
    },

    async keep(signal) {
      while (!signal.aborted) {
        let waitMs = lease.configuredMs / 6 // also for a claim won meanwhile; its age decides, so no jitter is needed
        for (const attempt of held) waitMs = Math.min(waitMs, Math.max(1, check(attempt)))
        await clock.sleep(waitMs, signal).catch(() => undefined)
      }
    },

    proven(attempt) {
      const age = clock.ticks() - attempt.provenAt! // at two thirds renewals have failed, and little time is left
      if (held.has(attempt) && age > (attempt.leaseMs! * 2) / 3)
        lose(attempt, `the claim on ${attempt.id} was not renewed in time`)
      return held.has(attempt)
    },

    drop: (attempt) => void held.delete(attempt),
  }
}
