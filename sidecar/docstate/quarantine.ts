import type { Clock } from '../core/clock.ts'
import { Semaphore } from '../core/semaphore.ts'
import { withTimeout } from '../core/timeout.ts'

/** A document that was lost this often runs without any other. */
const ALONE = 2

/**
 * Finds the document that crashes processes. Documents that ran when a worker was lost are suspects. They run one at a
 * time, across all handlers of the process. A document that was lost twice runs with nothing else beside it. So a third
 * loss is its own fault.
 */
export class Quarantine {
  readonly #suspects = new Semaphore(() => 1)
  readonly #clock: Clock
  readonly #mostMs: number
  #running = 0
  #whenEmpty: (() => void) | undefined
  /** Set while a document runs alone. */
  #closed: { readonly opened: Promise<void>; readonly open: () => void } | undefined

  /** @param mostMs maximum wait of a lone document for all others, and of the others for it */
  constructor(clock: Clock, mostMs = 30_000) {
    this.#clock = clock
    this.#mostMs = mostMs
  }

  /** Runs a suspect when no other suspect runs. */
  apart<T>(way: () => Promise<T>): Promise<T> {
    return this.#suspects.run(way)
  }

  /** Call before a claim or a handler: undefined if the document may continue at once. Each call needs one `leave`. */
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
