import { LeaseWatch } from './claims/lease-watch.ts'
import { BranchLeases } from './conflicts/branch-leases.ts'
import { Stuck } from './conflicts/stuck.ts'

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
