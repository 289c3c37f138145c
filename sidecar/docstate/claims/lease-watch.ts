import type { StoredDoc } from '../../couch/documents.ts'
import type { Claim } from '../types.ts'

const MIN_LEASE_MS = 1000
const MAX_LEASE_MS = 600_000

/** Tells which claims of others have died: those whose document kept the same revision for a whole lease. */
export class LeaseWatch {
  readonly #stillness: Stillness

  constructor(ticks: () => number) {
    this.#stillness = new Stillness(ticks)
  }

  /** How many documents are watched. */
  get size(): number {
    return this.#stillness.size
  }

  /** 0 if so many leases are over; otherwise in how many milliseconds to look again. */
  remaining(doc: StoredDoc, claim: Claim, leases = 1): number {
    const leaseMs = Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, claim.lease_ms))
    return this.#stillness.remaining(doc._id, doc._rev, leaseMs * leases)
  }

  forget(id: string): void {
    this.#stillness.forget(id)
  }
}

/**
 * For how long things have stayed the same, by a clock that never jumps: what is at rest for its whole time counts as
 * dead. Times that others wrote are never compared with ours.
 */
class Stillness {
  readonly #seen = new Map<string, { mark: string; since: number }>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How many things are watched. */
  get size(): number {
    return this.#seen.size
  }

  /** 0 if `name` has had the same mark for `ms`; otherwise in how many milliseconds it will have, if nothing changes. */
  remaining(name: string, mark: string, ms: number): number {
    const seen = this.#seen.get(name)
    if (seen?.mark !== mark) {
      this.#seen.set(name, { mark, since: this.#ticks() })
      return ms
    }
    return Math.max(0, Math.ceil(ms - (this.#ticks() - seen.since)))
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }
}
