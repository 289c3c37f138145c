import type { StoredDoc } from '../couch/documents.ts'
import type { Claim } from './types.ts'

const MIN_LEASE_MS = 1000
const MAX_LEASE_MS = 600_000

/**
 * Tells which claims of others have died: those whose document kept the same revision for a whole lease, by our own
 * clock from the moment we first saw it. The times written in claims are never compared with ours.
 */
export class LeaseWatch {
  readonly #seen = new Map<string, { rev: string; since: number }>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** 0 if the lease is over; otherwise in how many milliseconds to look again. */
  remaining(doc: StoredDoc, claim: Claim): number {
    const leaseMs = Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, claim.lease_ms))
    const seen = this.#seen.get(doc._id)
    if (seen?.rev !== doc._rev) {
      this.#seen.set(doc._id, { rev: doc._rev, since: this.#ticks() })
      return leaseMs
    }
    return Math.max(0, Math.ceil(leaseMs - (this.#ticks() - seen.since)))
  }

  forget(id: string): void {
    this.#seen.delete(id)
  }
}
