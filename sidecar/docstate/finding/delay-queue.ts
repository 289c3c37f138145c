import { onAbort } from '../../core/on-abort.ts'
import type { Clock } from '../../core/clock.ts'

/** Times are rounded up to this: reads become fewer and larger. */
const GRAIN_MS = 50

/**
 * Ids of documents to check, each with its due time. The queue holds ids, not documents, and each id once: the earliest
 * time counts. It keeps no id beyond the horizon: the next resync finds that document.
 */
export class DelayQueue {
  readonly #at = new Map<string, number>()
  readonly #clock: Clock
  readonly #horizonMs: number
  #wake: (() => void) | undefined
  /** Time for which `next` waits. */
  #until = Infinity
  /** The earliest time beyond the horizon. */
  #later = Infinity

  constructor(clock: Clock, horizonMs: number) {
    this.#clock = clock
    this.#horizonMs = horizonMs
  }

  /** Checks this document at `at` (milliseconds since the epoch), default now. */
  add(id: string, at: number = this.#clock.now()): void {
    if (at > this.#clock.now() + this.#horizonMs) return this.later(at)
    const grained = Math.ceil(at / GRAIN_MS) * GRAIN_MS
    const known = this.#at.get(id)
    if (known !== undefined && known <= grained) return
    this.#at.set(id, grained)
    if (grained < this.#until) this.#wake?.()
  }

  /** Notes the due time of a document that is not kept here: a resync will find it. */
  later(at: number): void {
    this.#later = Math.min(this.#later, at)
  }

  /** Resets the time beyond the horizon, which the resync that begins now finds again. Returns the previous time. */
  forgetLater(): number {
    const known = this.#later
    this.#later = Infinity
    return known
  }

  /** When the next document is due, or may be, in milliseconds since the epoch; infinite if none is known. */
  nextAt(): number {
    return Math.min(this.#later, this.nextKept())
  }

  /** Like `nextAt`, but only for the ids that are kept here. */
  nextKept(): number {
    let next = Infinity
    for (const at of this.#at.values()) next = Math.min(next, at)
    return next
  }

  /** Waits for the next due ids. Throws the signal's reason. */
  async next(signal: AbortSignal): Promise<string[]> {
    for (;;) {
      signal.throwIfAborted()
      const now = this.#clock.now()
      const due = [...this.#at].filter(([, at]) => at <= now).map(([id]) => id)
      for (const id of due) this.#at.delete(id)
      if (due.length > 0) return due
      this.#until = this.nextKept()
      await this.#pause(this.#until - now, signal)
    }
  }

  /** Waits until the time is over (it may be infinite) or an earlier id is added. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    this.#wake = () => woken.abort()
    const stopListening = onAbort(signal, this.#wake)
    const day = 86_400_000
    await this.#clock.sleep(Math.min(ms, day), woken.signal).catch(() => undefined)
    this.#wake = undefined
    stopListening()
  }
}
