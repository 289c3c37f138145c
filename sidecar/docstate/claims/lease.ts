import type { Logger } from 'pino'
import type { Clock } from '../../core/clock.ts'
import type { AdaptiveTimeout } from '../../couch/adaptive-timeout.ts'

/** Limits of the lease in a claim, milliseconds: a watcher waits for no shorter and no longer time. */
export const SHORTEST_LEASE_MS = 1000
export const LONGEST_LEASE_MS = 600_000

export interface LeaseOptions {
  /** A claim that is not renewed for this long may be taken over by another worker. Milliseconds. */
  readonly leaseMs: number
  readonly clock: Pick<Clock, 'ticks'>
  readonly log: Logger
}

/**
 * A lease lasts at least this many times the slowest answer. On a cluster, a claim may need four answers before its
 * handler begins, within two thirds of the lease: of a request before it, of its own, and of two reads.
 */
const ANSWERS = 6
/** Maximum lease and timeout that slow answers cause; configured ones may be longer. */
const MOST_LEASE_MS = 240_000
const MOST_TIMEOUT_MS = 60_000
/** The slowest answer counts for one to two periods. A period lasts this many configured leases, or current ones. */
const PERIOD = { configured: 10, current: 2 }

/**
 * The lease of new claims: as configured, or longer while CouchDB answers slowly. A request about a claim waits at most
 * half a lease for its answer, because other claims wait with it. So with a fixed lease, a CouchDB that always needs
 * longer would never confirm a claim, and no unsafe handler would ever begin. A request that times out triples the
 * lease.
 */
export class Lease implements AdaptiveTimeout {
  readonly configuredMs: number
  readonly #options: LeaseOptions
  /** Slowest answer of this period and of the one before, milliseconds. */
  #slowest = 0
  #slowestBefore = 0
  #periodBegan: number
  /** Shorter leases that claims may still have, until their end in ticks. */
  #earlier: { readonly ms: number; readonly until: number }[] = []

  constructor(options: LeaseOptions) {
    this.configuredMs = options.leaseMs
    this.#options = options
    this.#periodBegan = options.clock.ticks()
  }

  /** The lease of a claim that is written now, milliseconds. */
  get ms(): number {
    this.#beginPeriod()
    return this.#current()
  }

  /** Half of the shortest lease that a claim may have now. */
  get timeoutMs(): number {
    const now = this.#options.clock.ticks()
    this.#earlier = this.#earlier.filter(({ until }) => until > now)
    const shortestMs = Math.min(this.ms, ...this.#earlier.map(({ ms }) => ms))
    return Math.min(shortestMs / 2, Math.max(MOST_TIMEOUT_MS, this.configuredMs / 2))
  }

  sent(): () => void {
    const { clock } = this.#options
    const [at, mostMs] = [clock.ticks(), this.timeoutMs]
    return () => this.#took(Math.min(mostMs, clock.ticks() - at)) // more, if this process was paused
  }

  #current(): number {
    const neededMs = Math.ceil(ANSWERS * Math.max(this.#slowest, this.#slowestBefore))
    return Math.max(this.configuredMs, Math.min(MOST_LEASE_MS, neededMs))
  }

  #took(ms: number): void {
    const { clock, log } = this.#options
    const before = this.ms
    this.#slowest = Math.max(this.#slowest, ms)
    const now = this.ms
    if (now === before) return
    this.#earlier.push({ ms: before, until: clock.ticks() + before })
    if (before > this.configuredMs) return
    log.warn(
      { tookMs: Math.round(ms), leaseMs: now },
      'CouchDB answers slowly or not at all; claims get longer leases until it answers faster',
    )
  }

  #beginPeriod(): void {
    const now = this.#options.clock.ticks()
    const periodMs = Math.max(PERIOD.configured * this.configuredMs, PERIOD.current * this.#current())
    const periods = (now - this.#periodBegan) / periodMs
    if (periods <= 1) return
    this.#slowestBefore = periods > 2 ? 0 : this.#slowest
    this.#slowest = 0
    this.#periodBegan = now
  }
}
