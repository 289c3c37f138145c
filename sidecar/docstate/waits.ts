import { LeaseWatch } from './claims/lease-watch.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf, isClaim } from './classify.ts'

/** Waits that outlast a visit: for claims of other workers, and for conflicts that an operator must fix. */
export interface Waits {
  readonly leases: LeaseWatch
  readonly branches: BranchLeases
  readonly stuck: Stuck
  /** Number of waits. */
  readonly size: number
}

/** @param ticks monotonic clock, milliseconds */
export function createWaits(ticks: () => number): Waits {
  const [leases, branches, stuck] = [new LeaseWatch(ticks), new BranchLeases(ticks), new Stuck(ticks)]
  return {
    ...{ leases, branches, stuck },
    get size() {
      return leases.size + branches.size + stuck.size
    },
  }
}

const FIRST_MS = 30_000
const LONGEST_MS = 3_600_000
const MOST = 10_000

interface Entry {
  readonly mark: string
  readonly tries: number
  readonly until: number
}

/**
 * Conflicts that an operator must fix. Each is reported once. It is retried at growing intervals, or when the document
 * has changed. If too many exist, the oldest are forgotten, and reported again.
 */
export class Stuck {
  readonly #entries = new Map<string, Entry>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** Number of stuck conflicts. */
  get size(): number {
    return this.#entries.size
  }

  /** Milliseconds until the next retry, unless the document changes. */
  remaining(doc: StoredDoc): number {
    const entry = this.#entries.get(doc._id)
    return entry?.mark === markOf(doc) ? Math.max(0, entry.until - this.#ticks()) : 0
  }

  /** Returns true if the conflict is new. */
  add(doc: StoredDoc): boolean {
    const known = this.#entries.get(doc._id)
    const tries = (known?.tries ?? 0) + 1
    const until = this.#ticks() + Math.min(LONGEST_MS, FIRST_MS * 2 ** (tries - 1))
    this.#entries.delete(doc._id)
    this.#entries.set(doc._id, { mark: markOf(doc), tries, until })
    if (this.#entries.size > MOST) this.#entries.delete(this.#entries.keys().next().value!)
    return !known
  }

  forget(id: string): void {
    this.#entries.delete(id)
  }
}

const markOf = ({ _rev, _conflicts = [] }: StoredDoc): string => [_rev, ...[..._conflicts].sort()].join()

/** Longer than the longest lease, and than the time between two looks at a document that waits for one. */
const KEPT_MS = 1_200_000

/**
 * Watches the claims on all branches of a document. A document without queries for a while is forgotten: other workers
 * resolved it. A later query only waits for another lease.
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

  /** Number of watched documents. */
  get size(): number {
    return this.#ownRevisions.size + this.#older.size
  }

  /** Milliseconds until the last claim on these leaves is over or may be taken over; 0 without a claim. */
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
