import { Semaphore } from '../../core/semaphore.ts'
import type { CallOptions } from '../../couch/database.ts'

/**
 * Asks CouchDB about a document that this worker holds or may hold. The claim ages meanwhile, so the question goes
 * before requests that begin new work. Each question needs a permit, as a write does. One database gets few at once: if
 * it does not answer, claims in other databases are still renewed. `isHeld`: the document is surely held; such
 * questions go before uncertain ones.
 */
export type ReadHeld = <T>(question: (options: CallOptions) => Promise<T>, isHeld?: boolean) => Promise<T>

export interface ReadHeldOptions {
  /** Permits, shared with the writers of all databases. */
  readonly turns: Semaphore
  /** Maximum wait for an answer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const TOGETHER = 4

export function createReadHeld({ turns, timeoutMs, signal }: ReadHeldOptions): ReadHeld {
  const ours = new Semaphore(() => TOGETHER)
  const options = { first: true, timeoutMs, signal }
  return (question, isHeld) => ours.run(() => turns.run(() => question(options), true, signal), isHeld, signal)
}
