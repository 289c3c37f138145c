import type { Clock } from './clock.ts'
import type { CouchErrorCode } from '../couch/errors.ts'

/** So many failures in a row, and the server is left alone for so long. */
const [MOST, REST_MS] = [10, 5000]

/** A server that is away, or does not know us, is not asked for thousands of databases one after the other. */
export class CircuitBreaker {
  readonly #clock: Clock
  #count = 0
  #until = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Nothing is to be asked before this, by the clock's ticks; undefined if it may be asked now. */
  get restsUntil(): number | undefined {
    return this.#clock.ticks() < this.#until ? this.#until : undefined
  }

  succeeded(): void {
    this.#count = 0
  }

  failed(code: CouchErrorCode): void {
    if (code !== 'unreachable' && code !== 'unauthorized') return
    this.#count += 1
    if (this.#count >= MOST) this.#until = this.#clock.ticks() + REST_MS
  }
}
