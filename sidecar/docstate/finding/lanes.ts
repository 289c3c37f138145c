import type { ByteBudget, BudgetShare } from '../../core/byte-budget.ts'
import type { RunAttempt } from '../run-attempt.ts'
import type { Registration } from '../types.ts'

/** The way of the documents of one handler, with its own share of the byte budget: it holds up no other. */
export interface Lane {
  readonly registration: Registration
  readonly run: RunAttempt
  readonly share: BudgetShare
}

export type LaneOf = (registration: Registration) => Lane

export function createLanes(byteBudget: ByteBudget, createFly: (registration: Registration) => RunAttempt): LaneOf {
  const lanes = new Map<Registration, Lane>()
  return (registration) => {
    const known = lanes.get(registration)
    if (known) return known
    const lane = { registration, run: createFly(registration), share: byteBudget.share() }
    lanes.set(registration, lane)
    return lane
  }
}
