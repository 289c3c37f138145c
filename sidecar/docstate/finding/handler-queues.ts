import type { ByteBudget, BudgetShare } from '../../core/byte-budget.ts'
import type { RunAttempt } from '../run-attempt.ts'
import type { Registration } from '../types.ts'

/** The way of the documents of one handler, with its own share of the byte budget: it holds up no other. */
export interface HandlerQueue {
  readonly registration: Registration
  readonly run: RunAttempt
  readonly share: BudgetShare
}

export type QueueOf = (registration: Registration) => HandlerQueue

export function createHandlerQueues(
  byteBudget: ByteBudget,
  createRun: (registration: Registration) => RunAttempt,
): QueueOf {
  const queues = new Map<Registration, HandlerQueue>()
  return (registration) => {
    const known = queues.get(registration)
    if (known) return known
    const queue = { registration, run: createRun(registration), share: byteBudget.share() }
    queues.set(registration, queue)
    return queue
  }
}
