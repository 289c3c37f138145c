import { isoTime, type Clock } from '../core/clock.ts'
import type { Random } from '../core/backoff.ts'
import type { Database } from '../couch/database.ts'
import { claimed, released } from './documents.ts'
import type { Flight } from './flight.ts'
import type { Store, Stored } from './store.ts'
import type { Claim } from './types.ts'

export interface Claims {
  /** Tries to win the document for this flight. */
  take(flight: Flight): Promise<Stored>
  /** Gives the document back, untouched: somebody else may take it at once. */
  release(flight: Flight): Promise<void>
  /** Renews the claims that are due, until the signal aborts. */
  keep(signal: AbortSignal): Promise<void>
  /** No more to be renewed. */
  drop(flight: Flight): void
}

export interface ClaimsOptions {
  readonly database: Database
  readonly store: Store
  readonly worker: string
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
}

/** The reason with which `ctx.signal` aborts when the document is not ours any more. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
  readonly code = 'claim_lost'
}

/**
 * A claim is won by a write that the document's revision lets only one worker make. A server's 201 is won; 409 and a
 * cluster's 202 are lost. It is renewed each third of the lease, long before anybody may doubt it; a worker that could
 * not prove it for nine tenths of a lease no longer believes it has it, and its handler is told.
 */
export function createClaims(options: ClaimsOptions): Claims {
  const { store, worker, leaseMs, clock, random } = options
  const held = new Set<Flight>()
  const renewing = new Set<Flight>()

  const claimOf = (flight: Flight): Claim => ({
    worker,
    token: flight.token,
    at: isoTime(clock.now()),
    lease_ms: leaseMs,
  })

  async function renew(flight: Flight): Promise<void> {
    renewing.add(flight)
    const asked = clock.ticks()
    const outcome = await flight
      .exclusive(() => (held.has(flight) ? store(flight, claimed(flight, claimOf(flight))) : undefined))
      .finally(() => renewing.delete(flight))
    if (outcome?.kind === 'stored') flight.provenAt = asked
    else if (outcome?.kind === 'lost') lose(flight, `${flight.id} was taken by another worker`)
  }

  function lose(flight: Flight, why: string): void {
    held.delete(flight)
    flight.stop(new ClaimLost(why))
  }

  return {
    async take(flight) {
      const asked = clock.ticks()
      const outcome = await store(flight, claimed(flight, claimOf(flight)))
      if (outcome.kind === 'stored') {
        flight.provenAt = asked
        held.add(flight)
        return outcome
      }
      if (outcome.kind === 'accepted') await takeBack(options.database, flight, store)
      return outcome
    },

    async release(flight) {
      held.delete(flight)
      await flight.exclusive(() => store(flight, released(flight)))
    },

    async keep(signal) {
      while (!signal.aborted) {
        await clock.sleep((leaseMs / 6) * (0.75 + random() / 2), signal).catch(() => undefined)
        for (const flight of held) {
          const age = clock.ticks() - flight.provenAt!
          if (age > leaseMs * 0.9) lose(flight, `no renewal of the claim on ${flight.id} succeeded in time`)
          else if (age > leaseMs / 3 && !renewing.has(flight)) {
            renew(flight).catch(() => undefined) // out of time for asking: the age will tell
          }
        }
      }
    },

    drop: (flight) => void held.delete(flight),
  }
}

/**
 * After a 202 our revision may stand beside another worker's. If the other one wins, ours is taken out of the tree;
 * if ours does, it is released, since deleting the only live revision would delete the document.
 */
async function takeBack(database: Database, flight: Flight, store: Store): Promise<void> {
  const ours = flight.doc._rev
  const winner = await database.find(flight.id, { conflicts: true })
  if (winner && winner._rev !== ours && winner._conflicts?.includes(ours)) await database.remove(flight.id, ours)
  else if (winner?._rev === ours) await store(flight, released(flight))
}
