import type { StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import { LeaseWatch } from '../claims/lease-watch.ts'

/** Longer than the longest lease, and than the time between two looks at a document that waits for one. */
const KEPT_MS = 1_200_000

/**
 * Watches the claims on all branches of a document. What was not asked about for a while is forgotten: it was resolved
 * by others. Who asks later only waits for another lease.
 */
export class BranchLeases {
  readonly #ticks: () => number
  #ownRevisions = new Map<string, LeaseWatch>()
  #older = new Map<string, LeaseWatch>()
  #turned: number

  constructor(ticks: () => number) {
    this.#ticks = ticks
    this.#turned = ticks()
  }

  /** How many documents are watched. */
  get size(): number {
    return this.#ownRevisions.size + this.#older.size
  }

  /** Milliseconds until the last claim on any of these is over or may be taken over; 0 if there is none. */
  remaining(id: string, leaves: readonly StoredDoc[]): number {
    const waits = leaves.map((leaf) => {
      const claim = docstateOf(leaf)?.claim
      return isClaim(claim) ? this.#watchOf(id).remaining({ ...leaf, _id: claim.token }, claim) : 0
    })
    return Math.max(0, ...waits)
  }

  forget(id: string): void {
    this.#ownRevisions.delete(id)
    this.#older.delete(id)
  }

  #watchOf(id: string): LeaseWatch {
    if (this.#ticks() - this.#turned > KEPT_MS) {
      this.#older = this.#ownRevisions
      this.#ownRevisions = new Map()
      this.#turned = this.#ticks()
    }
    const watch = this.#ownRevisions.get(id) ?? this.#older.get(id) ?? new LeaseWatch(this.#ticks)
    this.#older.delete(id)
    this.#ownRevisions.set(id, watch)
    return watch
  }
}
