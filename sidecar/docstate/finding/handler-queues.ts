import type { ByteBudget, BudgetShare } from '../../core/byte-budget.ts'
import { Keys } from '../keys.ts'
import type { RunAttempt } from '../run-attempt.ts'
import type { Registration } from '../types.ts'

/** Queue of one handler's documents. Its own share of the byte budget keeps it from delaying other handlers. */
export interface HandlerQueue {
  readonly registration: Registration
  readonly run: RunAttempt
  readonly share: BudgetShare
  readonly keys: Keys
}

export type QueueOf = (registration: Registration) => HandlerQueue

export function createHandlerQueues(
  byteBudget: ByteBudget,
  lookAgain: (id: string) => void,
  createRun: (registration: Registration, keys: Keys) => RunAttempt,
): QueueOf {
  const queues = new Map<Registration, HandlerQueue>()
  return (registration) => {
    const known = queues.get(registration)
    if (known) return known
    const keys = new Keys(lookAgain)
    const queue = { registration, run: createRun(registration, keys), share: byteBudget.share(), keys }
    queues.set(registration, queue)
    return queue
  }
}
