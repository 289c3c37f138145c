import { onAbort } from '../../core/on-abort.ts'
import type { Clock } from '../../core/clock.ts'

/** Times closer together than this are one: fewer, larger reads. */
const GRAIN_MS = 50

/**
 * Ids of documents that want to be looked at, each with the time for it. Holds names, not documents, and an id once:
 * the earliest time counts. What lies beyond the horizon is not kept: the next resync finds it.
 */
export class DelayQueue {
  readonly #at = new Map<string, number>()
  readonly #clock: Clock
  readonly #horizonMs: number
  #wake: (() => void) | undefined
  /** What `next` sleeps for. */
  #until = Infinity
  /** The earliest time beyond the horizon. */
  #later = Infinity

  constructor(clock: Clock, horizonMs: number) {
    this.#clock = clock
    this.#horizonMs = horizonMs
  }

  /** Look at this document at `at` (milliseconds since the epoch), or now. */
  add(id: string, at: number = this.#clock.now()): void {
    if (at > this.#clock.now() + this.#horizonMs) return this.later(at)
    const grained = Math.ceil(at / GRAIN_MS) * GRAIN_MS
    const known = this.#at.get(id)
    if (known !== undefined && known <= grained) return
    this.#at.set(id, grained)
    if (grained < this.#until) this.#wake?.()
  }

  /** Something is due then that is not kept here: a resync will find it. */
  later(at: number): void {
    this.#later = Math.min(this.#later, at)
  }

  /** A resync begins, which finds out anew what is due beyond the horizon. Answers what was known of it. */
  forgetLater(): number {
    const known = this.#later
    this.#later = Infinity
    return known
  }

  /** When the next document is due, or may be; infinite if none is known to be. Milliseconds since the epoch. */
  nextAt(): number {
    return Math.min(this.#later, this.nextKept())
  }

  /** The same of those whose ids are kept here. */
  nextKept(): number {
    let next = Infinity
    for (const at of this.#at.values()) next = Math.min(next, at)
    return next
  }

  /** Nothing is due for it any more. */
  forget(id: string): void {
    this.#at.delete(id)
  }

  /** Waits for the next ids that are due. Throws the signal's reason. */
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

  /** Until the time is over (it may be infinite) or something is added. */
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
