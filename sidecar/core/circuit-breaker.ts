import type { Clock } from './clock.ts'

/** After so many failures in a row, no call is made for so long. */
const [MOST, REST_MS] = [10, 5000]

/** Stops calls to a server that keeps failing, so that thousands of databases do not each try it in turn. */
export class CircuitBreaker {
  readonly #clock: Clock
  #count = 0
  #until = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** No call before this time, in the clock's ticks; undefined if calls are allowed now. */
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
