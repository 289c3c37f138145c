import type { Clock } from './clock.ts'

/** Failures in a row that open the circuit, and how long it stays open, milliseconds. */
const [MOST, REST_MS] = [10, 5000]

/** Stops calls to a server that keeps failing, so that thousands of databases do not each try it. */
export class CircuitBreaker {
  readonly #clock: Clock
  #count = 0
  #until = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** End of the pause, in the clock's ticks; undefined if calls are allowed now. */
  get restsUntil(): number | undefined {
    return this.#clock.ticks() < this.#until ? this.#until : undefined
  }

  succeeded(): void {
    this.#count = 0
  }

  failed(): void {
    this.#count += 1
    if (this.#count >= MOST) this.#until = this.#clock.ticks() + REST_MS
  }
}
