import type { Clock } from '../core/clock.ts'
import { Semaphore } from '../core/semaphore.ts'
import { withTimeout } from '../core/timeout.ts'

/** What was lost so often is to run without any other beside it. */
const ALONE = 2

/**
 * Finds the document that processes die of. What was running when a worker was lost is suspected, and runs one at a time, in
 * all handlers of the process; and what was lost twice with nothing else running at all, so that a third loss is its
 * own doing.
 */
export class Quarantine {
  readonly #suspects = new Semaphore(() => 1)
  readonly #clock: Clock
  readonly #mostMs: number
  #running = 0
  #whenEmpty: (() => void) | undefined
  /** While one runs alone. */
  #closed: { readonly opened: Promise<void>; readonly open: () => void } | undefined

  /** @param mostMs the longest that one waits for all others, and they for it */
  constructor(clock: Clock, mostMs = 30_000) {
    this.#clock = clock
    this.#mostMs = mostMs
  }

  /** Takes a suspect its way, when no other is on it. */
  apart<T>(way: () => Promise<T>): Promise<T> {
    return this.#suspects.run(way)
  }

  /** Before a document is claimed, or its handler called: undefined if it may go on at once. Each needs one `leave`. */
  enter(timesLost: number): Promise<void> | undefined {
    if (timesLost >= ALONE) return this.#enterAlone()
    if (this.#closed) return this.#closed.opened.then(() => this.enter(timesLost))
    this.#running += 1
    return undefined
  }

  leave(timesLost: number): void {
    this.#running -= 1
    if (timesLost >= ALONE) this.#closed?.open()
    else if (this.#running === 0) this.#whenEmpty?.()
  }

  async #enterAlone(): Promise<void> {
    let open = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve)).then(() => (this.#closed = undefined))
    this.#closed = { opened, open }
    if (this.#running > 0) {
      const empty = new Promise<void>((resolve) => (this.#whenEmpty = resolve))
      await withTimeout(this.#clock, this.#mostMs, empty)
      this.#whenEmpty = undefined
    }
    this.#running += 1
    void withTimeout(this.#clock, this.#mostMs, opened).then(open)
  }
}
