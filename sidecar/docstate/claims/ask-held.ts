import { Semaphore } from '../../core/semaphore.ts'
import type { CallOptions } from '../../couch/database.ts'

/**
 * Asks CouchDB about a document that we hold or may hold, whose claim grows old meanwhile: before all that begin
 * something. It takes a turn as a writer does, and few for one database at once: where it is silent, the claims in all
 * others are still renewed. `isHeld`: for certain; before those of which that is not known yet.
 */
export type AskHeld = <T>(question: (options: CallOptions) => Promise<T>, isHeld?: boolean) => Promise<T>

export interface AskHeldOptions {
  /** Shared with the writers of all databases. */
  readonly turns: Semaphore
  /** For an answer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const TOGETHER = 4

export function createAskHeld({ turns, timeoutMs, signal }: AskHeldOptions): AskHeld {
  const ours = new Semaphore(() => TOGETHER)
  const options = { first: true, timeoutMs, signal }
  return (question, isHeld) => ours.run(() => turns.run(() => question(options), true, signal), isHeld, signal)
}
