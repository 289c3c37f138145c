import { isoTime, type Clock } from '../../core/clock.ts'
import type { Random } from '../../core/backoff.ts'
import { Reject } from '../../core/errors.ts'
import type { Contest } from './contest.ts'
import { claimed, released, versionOf } from '../outcome-documents.ts'
import type { Attempt } from '../attempt.ts'
import type { WriteDoc, WriteResult } from '../write-doc.ts'
import type { Claim } from '../types.ts'

export interface Claims {
  /**
   * Tries to win the document for this attempt, whose handler is to begin at once. Calls `onContested` when that may take
   * long: then the claim does not say so; and `onUnsure` when the answer to the claim is lost, which is asked for again.
   */
  take(attempt: Attempt, onContested: () => void, onUnsure: () => void): Promise<WriteResult>
  /** Has the claim say that the handler begins, unless it does. False if that could not be written. */
  begin(attempt: Attempt): Promise<boolean>
  /** Gives the document back, untouched: another worker may take it at once. */
  release(attempt: Attempt): Promise<void>
  /** Renews the claims that are due, until the signal aborts. */
  keep(signal: AbortSignal): Promise<void>
  /** True while a handler may begin: the claim is ours, and for a good while yet. If not, it is to be given back. */
  proven(attempt: Attempt): boolean
  /** No more to be renewed. */
  drop(attempt: Attempt): void
}

export interface ClaimsOptions {
  readonly writeDoc: WriteDoc
  readonly contest: Contest
  readonly worker: string
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
}

/** Which part of a lease its holder believes in: the rest is for watchers whose clocks run faster. */
const BELIEVED = 0.9

/** The reason with which `ctx.signal` aborts when the document is not ours any more. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
  readonly code = 'claim_lost'
}

/** For a handler's own write. Throws `ClaimLost`, or `Reject` with what CouchDB says. */
export function requireStored({ id }: Attempt, outcome: WriteResult): void {
  if (outcome.kind === 'lost') throw new ClaimLost(`${id} has changed while its handler ran`)
  if (outcome.kind === 'refused') throw new Reject(outcome.failure.code, outcome.failure.reason)
}

/**
 * A claim is won by a write that the document's revision lets only one worker make. A server's 201 is won, 409 lost; a
 * cluster's 202 is contested. It is renewed each third of the lease, long before its end; a worker that could
 * not prove it for nine tenths of a lease no longer believes it has it, and its handler is told.
 */
export function createClaims(options: ClaimsOptions): Claims {
  const { writeDoc, contest, worker, leaseMs, clock, random } = options
  const held = new Set<Attempt>()
  const renewing = new Set<Attempt>()

  const claimOf = (attempt: Attempt): Claim => ({
    worker,
    token: attempt.token,
    at: isoTime(clock.now()),
    lease_ms: leaseMs,
    begun: attempt.begun,
    ...versionOf(attempt),
  })

  async function renew(attempt: Attempt): Promise<void> {
    renewing.add(attempt)
    const asked = clock.ticks()
    const outcome = await attempt
      .mutex(() =>
        held.has(attempt) && !attempt.left ? writeDoc(attempt, claimed(attempt, claimOf(attempt))) : undefined,
      )
      .finally(() => renewing.delete(attempt))
    if (outcome?.kind === 'stored') {
      attempt.provenAt = asked
      attempt.leaseMs = undefined
    } else if (outcome?.kind === 'lost') lose(attempt, `${attempt.id} was taken by another worker`)
  }

  /** Looks at one claim; answers in how many milliseconds to look again at the latest. */
  function check(attempt: Attempt): number {
    const age = clock.ticks() - attempt.provenAt!
    const believedMs = (attempt.leaseMs ?? leaseMs) * BELIEVED
    if (attempt.left) held.delete(attempt)
    else if (age >= believedMs) lose(attempt, `no renewal of the claim on ${attempt.id} succeeded in time`)
    else if (age > leaseMs / 3 && !renewing.has(attempt)) {
      renew(attempt).catch(() => undefined) // out of time for asking: the age will tell
    }
    return believedMs - age
  }

  function lose(attempt: Attempt, why: string): void {
    held.delete(attempt)
    attempt.stop(new ClaimLost(why))
  }

  return {
    async take(attempt, onContested, onUnsure) {
      const base = attempt.doc._rev
      const renewed = () => claimed(attempt, claimOf(attempt))
      attempt.provenAt = clock.ticks()
      attempt.begun = true
      const first = await writeDoc(attempt, renewed(), { onUnsure })
      if (first.kind === 'accepted') {
        attempt.begun = false
        onContested()
      }
      const outcome = first.kind === 'accepted' ? await contest(attempt, base, renewed) : first
      if (outcome.kind === 'stored') held.add(attempt)
      return outcome
    },

    async begin(attempt) {
      if (attempt.begun) return true
      attempt.begun = true
      const asked = clock.ticks()
      const { kind } = await attempt.mutex(() => writeDoc(attempt, claimed(attempt, claimOf(attempt))))
      if (kind === 'stored') attempt.provenAt = asked
      return kind === 'stored'
    },

    async release(attempt) {
      held.delete(attempt)
      await attempt.mutex(() => writeDoc(attempt, released(attempt)))
    },

    async keep(signal) {
      while (!signal.aborted) {
        let waitMs = (leaseMs / 6) * (0.75 + random() / 2)
        for (const attempt of held) waitMs = Math.min(waitMs, Math.max(1, check(attempt)))
        await clock.sleep(waitMs, signal).catch(() => undefined)
      }
    },

    proven(attempt) {
      const age = clock.ticks() - attempt.provenAt! // two thirds: renewals have failed, and little time would be left
      if (held.has(attempt) && age > (leaseMs * 2) / 3)
        lose(attempt, `the claim on ${attempt.id} was not renewed in time`)
      return held.has(attempt)
    },

    drop: (attempt) => void held.delete(attempt),
  }
}
