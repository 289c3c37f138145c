import { Stillness } from '../../core/stillness.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Claim } from '../types.ts'
import { LONGEST_LEASE_MS, SHORTEST_LEASE_MS } from './lease.ts'

/** Detects dead claims of other workers: their documents keep the same revision for a whole lease. */
export class LeaseWatch {
  readonly #stillness: Stillness

  constructor(ticks: () => number) {
    this.#stillness = new Stillness(ticks)
  }

  /** Number of watched documents. */
  get size(): number {
    return this.#stillness.size
  }

  /** Milliseconds until the document has kept its revision for `leases` leases; 0 if it has. */
  remaining(doc: StoredDoc, claim: Claim, leases = 1): number {
    const leaseMs = Math.min(LONGEST_LEASE_MS, Math.max(SHORTEST_LEASE_MS, claim.lease_ms))
    return this.#stillness.remaining(doc._id, doc._rev, leaseMs * leases)
  }

  forget(id: string): void {
    this.#stillness.forget(id)
  }
}
