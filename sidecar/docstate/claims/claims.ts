import { isoTime, type Clock } from '../../core/clock.ts'
import type { Random } from '../../core/backoff.ts'
import type { Contest } from './contest.ts'
import { claimed, released } from '../documents.ts'
import type { Flight } from '../flight.ts'
import type { Store, Stored } from '../store.ts'
import type { Claim } from '../types.ts'

export interface Claims {
  /**
   * Tries to win the document for this flight, whose handler is to begin at once. Calls `onContested` when that may take
   * long: then the claim does not say so; and `onUnsure` when the answer to the claim is lost, which is asked for again.
   */
  take(flight: Flight, onContested: () => void, onUnsure: () => void): Promise<Stored>
  /** Has the claim say that the handler begins, unless it does. False if that could not be written. */
  begin(flight: Flight): Promise<boolean>
  /** Gives the document back, untouched: somebody else may take it at once. */
  release(flight: Flight): Promise<void>
  /** Renews the claims that are due, until the signal aborts. */
  keep(signal: AbortSignal): Promise<void>
  /** True while a handler may begin: the claim is ours, and for a good while yet. If not, it is to be given back. */
  proven(flight: Flight): boolean
  /** No more to be renewed. */
  drop(flight: Flight): void
}

export interface ClaimsOptions {
  readonly store: Store
  readonly contest: Contest
  readonly worker: string
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
}

/** Which part of a lease its holder believes in: the rest is for whoever watches it with a faster clock. */
const BELIEVED = 0.9

/** The reason with which `ctx.signal` aborts when the document is not ours any more. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
  readonly code = 'claim_lost'
}

/**
 * A claim is won by a write that the document's revision lets only one worker make. A server's 201 is won, 409 lost; a
 * cluster's 202 is contested. It is renewed each third of the lease, long before anybody may doubt it; a worker that could
 * not prove it for nine tenths of a lease no longer believes it has it, and its handler is told.
 */
export function createClaims(options: ClaimsOptions): Claims {
  const { store, contest, worker, leaseMs, clock, random } = options
  const held = new Set<Flight>()
  const renewing = new Set<Flight>()

  const claimOf = (flight: Flight): Claim => ({
    worker,
    token: flight.token,
    at: isoTime(clock.now()),
    lease_ms: leaseMs,
    begun: flight.begun,
  })

  async function renew(flight: Flight): Promise<void> {
    renewing.add(flight)
    const asked = clock.ticks()
    const outcome = await flight
      .mutex(() => (held.has(flight) && !flight.left ? store(flight, claimed(flight, claimOf(flight))) : undefined))
      .finally(() => renewing.delete(flight))
    if (outcome?.kind === 'stored') flight.provenAt = asked
    else if (outcome?.kind === 'lost') lose(flight, `${flight.id} was taken by another worker`)
  }

  /** Looks at one claim; answers in how many milliseconds to look again at the latest. */
  function check(flight: Flight): number {
    const age = clock.ticks() - flight.provenAt!
    if (flight.left) held.delete(flight)
    else if (age >= leaseMs * BELIEVED) lose(flight, `no renewal of the claim on ${flight.id} succeeded in time`)
    else if (age > leaseMs / 3 && !renewing.has(flight)) {
      renew(flight).catch(() => undefined) // out of time for asking: the age will tell
    }
    return leaseMs * BELIEVED - age
  }

  function lose(flight: Flight, why: string): void {
    held.delete(flight)
    flight.stop(new ClaimLost(why))
  }

  return {
    async take(flight, onContested, onUnsure) {
      const base = flight.doc._rev
      const renewed = () => claimed(flight, claimOf(flight))
      flight.provenAt = clock.ticks()
      flight.begun = true
      const first = await store(flight, renewed(), onUnsure)
      if (first.kind === 'accepted') {
        flight.begun = false
        onContested()
      }
      const outcome = first.kind === 'accepted' ? await contest(flight, base, renewed) : first
      if (outcome.kind === 'stored') held.add(flight)
      return outcome
    },

    async begin(flight) {
      if (flight.begun) return true
      flight.begun = true
      const asked = clock.ticks()
      const { kind } = await flight.mutex(() => store(flight, claimed(flight, claimOf(flight))))
      if (kind === 'stored') flight.provenAt = asked
      return kind === 'stored'
    },

    async release(flight) {
      held.delete(flight)
      await flight.mutex(() => store(flight, released(flight)))
    },

    async keep(signal) {
      while (!signal.aborted) {
        let waitMs = (leaseMs / 6) * (0.75 + random() / 2)
        for (const flight of held) waitMs = Math.min(waitMs, Math.max(1, check(flight)))
        await clock.sleep(waitMs, signal).catch(() => undefined)
      }
    },

    proven(flight) {
      const age = clock.ticks() - flight.provenAt! // two thirds: renewals have failed, and little time would be left
      if (held.has(flight) && age > (leaseMs * 2) / 3) lose(flight, `the claim on ${flight.id} was not renewed in time`)
      return held.has(flight)
    },

    drop: (flight) => void held.delete(flight),
  }
}
