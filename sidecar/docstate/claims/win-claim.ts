import type { Logger } from 'pino'
import type { Attempt, AttemptEnd } from '../attempt.ts'
import type { Telemetry } from '../telemetry.ts'
import type { Turn } from '../turns.ts'
import type { Registration } from '../types.ts'
import type { WriteResult } from '../write-doc.ts'
import type { BranchCheck } from './branch-check.ts'
import type { Claims } from './claims.ts'

/**
 * Claims a document. Returns undefined if the claim is ours and says that its handler begins; else the attempt's end.
 */
export type WinClaim = (attempt: Attempt, turn: Turn) => Promise<AttemptEnd | undefined>

export interface WinClaimOptions {
  readonly registration: Registration
  readonly claims: Claims
  readonly branchCheck: BranchCheck
  readonly telemetry: Telemetry
  readonly log: Logger
  /** Aborts when no further handler may start. */
  readonly closing: AbortSignal
}

const MAX_REASONS = 10

export function createWinClaim(options: WinClaimOptions): WinClaim {
  const { registration, claims, branchCheck, telemetry, log, closing } = options
  const counts = telemetry.counts.of(registration)
  const refused = new Set<string>()

  /** Logs each reason once until a claim is stored: one reason may refuse thousands of claims. */
  function logRefusal(attempt: Attempt, claim: WriteResult): void {
    if (claim.kind === 'stored') refused.clear()
    if (claim.kind !== 'refused') return
    const known = refused.has(claim.failure.reason) || refused.size >= MAX_REASONS
    log[known ? 'debug' : 'error'](
      { doc: attempt.id, code: claim.failure.code, reason: claim.failure.reason },
      'CouchDB refuses the claim; trying again every 30 s',
    )
    refused.add(claim.failure.reason)
  }

  /** Ends the attempt if the sidecar stops before the claim is sent. Rethrows any other error. */
  function unsent(thrown: unknown): 'given-up' {
    if (closing.aborted && thrown === closing.reason) return 'given-up'
    throw thrown
  }

  return async (attempt, turn) => {
    const onContested = () => turn.leave()
    const onUnsure = () => turn.letOthersBegin() // otherwise repeated lost answers would delay all waiting attempts
    const claim = await claims.take(attempt, onContested, onUnsure).catch(unsent)
    if (claim === 'given-up') return claim
    counts.claims[claim.kind] += 1
    logRefusal(attempt, claim)
    if (claim.kind === 'lost') {
      telemetry.channel('claim:lost')?.publish(telemetry.of(attempt))
      return 'not-ours'
    }
    if (claim.kind === 'accepted') return 'look-again'
    if (claim.kind === 'refused') return 'not-taken'
    telemetry.channel('claim:won')?.publish(telemetry.of(attempt))

    await branchCheck(attempt)
    await turn.mayBegin()
    const mayStart = () => !closing.aborted && !attempt.outdated && claims.proven(attempt)
    if (mayStart() && (await claims.begin(attempt)) && mayStart()) return undefined
    turn.leave() // before the release, so that all waiting attempts release together
    await claims.release(attempt)
    return closing.aborted ? 'given-up' : attempt.outdated ? 'look-again' : 'overtaken'
  }
}
