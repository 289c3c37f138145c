import type { Logger } from 'pino'
import { Slots } from '../core/slots.ts'
import type { Claims } from './claims/claims.ts'
import type { Execute } from './execute.ts'
import type { Flight } from './flight.ts'
import type { Life } from './life.ts'
import type { Settle } from './settle.ts'
import type { Stored } from './store.ts'
import type { Outcome, Registration } from './types.ts'

export interface FlyOptions {
  readonly registration: Registration
  readonly claims: Claims
  readonly execute: Execute
  readonly settle: Settle
  readonly life: Life
  readonly ticks: () => number
  readonly log: Logger
  /** Aborted once no further handler may start. */
  readonly closing: AbortSignal
}

/**
 * `settled`: done, or written down for later. `not-ours`: another worker has it. `not-taken`: nothing of it could be
 * written now, and nobody else has it. `look-again`: it has changed before its turn came, or nobody knows whose it is.
 * `given-up`: the sidecar stops; nothing was done.
 */
export type FlightEnd = 'settled' | 'not-ours' | 'not-taken' | 'look-again' | 'given-up'

/** Takes one document all the way: claim, run, save. */
export type Fly = (flight: Flight) => Promise<FlightEnd>

/** Claims run ahead of the handler by what it gets through in this time: what a crash leaves in doubt stays small. */
const AHEAD_MS = 100
const MAX_AHEAD = 2000
const MAX_REASONS = 10

/**
 * The way of the documents of one handler. At most `concurrency` run at once. Claims are won a little ahead of that,
 * so that they travel in groups: as many as the handler gets through in a tenth of a second.
 */
export function createFly({ registration, claims, execute, settle, life, ticks, log, closing }: FlyOptions): Fly {
  const { concurrency } = registration.options
  const counts = life.counts.of(registration)
  const unsafe = registration.mode === 'unsafe'
  let meanMs = AHEAD_MS
  const claimable = new Slots(() => Math.min(MAX_AHEAD, concurrency * (1 + AHEAD_MS / meanMs)))
  const runnable = new Slots(() => concurrency)
  const refused = new Set<string>()

  async function claimAndRun(flight: Flight, giveWay: () => void): Promise<Outcome | FlightEnd> {
    if (closing.aborted) return 'given-up'
    if (flight.outdated || flight.maybeBranched) return 'look-again'
    const claim = unsafe ? await claims.take(flight, giveWay).catch(unsent) : undefined
    if (claim === 'given-up') return claim
    if (claim) counts.claims[claim.kind] += 1
    if (claim?.kind === 'lost') {
      life.channel('claim:lost')?.publish(life.of(flight))
      return 'not-ours'
    }
    if (claim?.kind === 'stored') life.channel('claim:won')?.publish(life.of(flight))
    if (claim) tellRefusal(flight, claim)
    if (claim?.kind === 'accepted') return 'look-again'
    if (claim?.kind === 'refused') return 'not-taken'
    await runnable.enter()
    if (closing.aborted || flight.outdated || (unsafe && !claims.proven(flight))) {
      runnable.leave() // first, so that all who wait here give back together
      if (unsafe) await claims.release(flight)
      return closing.aborted ? 'given-up' : flight.outdated ? 'look-again' : 'not-ours'
    }
    counts.running += 1
    try {
      const began = ticks()
      const outcome = await execute(flight)
      const tookMs = ticks() - began
      meanMs += (Math.max(0.01, tookMs) - meanMs) / 16
      counts.runs[outcome.kind] += 1
      counts.took.add(tookMs)
      return outcome
    } finally {
      counts.running -= 1
      runnable.leave()
    }
  }

  /** The sidecar stops while the claim waits for its turn to be sent. */
  function unsent(thrown: unknown): 'given-up' {
    if (closing.aborted && thrown === closing.reason) return 'given-up'
    throw thrown
  }

  /** Whatever refuses one claim refuses thousands: each reason is told once, until a claim is taken. */
  function tellRefusal(flight: Flight, claim: Stored): void {
    if (claim.kind === 'stored') refused.clear()
    if (claim.kind !== 'refused') return
    const known = refused.has(claim.failure.reason) || refused.size >= MAX_REASONS
    log[known ? 'debug' : 'error'](
      { doc: flight.id, ...claim.failure },
      'CouchDB refuses the claim; it is tried again every 30 s',
    )
    refused.add(claim.failure.reason)
  }

  async function goAllTheWay(flight: Flight): Promise<FlightEnd> {
    const leave = once(() => claimable.leave())
    try {
      const outcome = await claimAndRun(flight, leave).finally(leave)
      if (typeof outcome === 'string') return outcome
      return await settle(flight, outcome)
    } finally {
      counts.inFlight -= 1
      claims.drop(flight)
    }
  }

  // Thousands wait here: for each there is this promise and nothing else.
  return (flight) =>
    new Promise((resolve, reject) => {
      counts.inFlight += 1
      claimable.take(() => void goAllTheWay(flight).then(resolve, reject))
    })
}

function once(act: () => void): () => void {
  let done = false
  return () => {
    if (!done) act()
    done = true
  }
}
