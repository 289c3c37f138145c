import { LeaseWatch } from './claims/lease-watch.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf, isClaim } from './classify.ts'

/** What is waited for longer than a visit takes: since when claims of others stand still, and what a person has to mend. */
export interface Waits {
  readonly leases: LeaseWatch
  readonly branches: BranchLeases
  readonly stuck: Stuck
  /** How much there is. */
  readonly size: number
}

/** @param ticks of a clock that never jumps, in milliseconds */
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
 * Conflicts that cannot be resolved until a person does something: each is told once, and tried again later and later,
 * or when the document has changed. Of too many the first are forgotten, and told again.
 */
export class Stuck {
  readonly #entries = new Map<string, Entry>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How many there are. */
  get size(): number {
    return this.#entries.size
  }

  /** How long it is to be left alone as it is now, in milliseconds. */
  remaining(doc: StoredDoc): number {
    const entry = this.#entries.get(doc._id)
    return entry?.mark === markOf(doc) ? Math.max(0, entry.until - this.#ticks()) : 0
  }

  /** True if it is news. */
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
