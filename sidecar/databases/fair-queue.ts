import { Queue } from '../core/queue.ts'

/** Of so many turns one is for a database that no event has named. */
const ONE_IN = 4

/**
 * Which database is visited next. Those that an event has named go first, but never alone: those that are due and
 * those that only a look at all has found have turns of their own, one after the other, however many of the others wait.
 */
export class FairQueue {
  readonly #told = new Queue()
  readonly #found = new Queue()
  readonly #due = new Queue()
  #taken = 0
  #takenOfOthers = 0

  /** How many wait. */
  get size(): number {
    return this.#told.size + this.#found.size + this.#due.size
  }

  tell(name: string): void {
    this.#found.remove(name)
    this.#told.add(name)
  }

  find(name: string): void {
    this.#found.add(name)
  }

  /** Whether an event has named it, or a sweep has found it. */
  hasNewsOf(name: string): boolean {
    return this.#told.has(name) || this.#found.has(name)
  }

  /** At this time, if it was not to come earlier. */
  addAt(name: string, at: number): void {
    this.#due.addAt(name, at)
  }

  /** Those whose time has come wait from now on. */
  ripen(now: number): void {
    this.#due.ripen(now)
  }

  /** When the next one's time comes. */
  nextAt(): number | undefined {
    return this.#due.nextAt()
  }

  remove(name: string): void {
    for (const queue of [this.#told, this.#found, this.#due]) queue.remove(name)
  }

  take(): string | undefined {
    const isOthersTurn = this.#taken++ % ONE_IN === 0
    return isOthersTurn ? (this.#takeOther() ?? this.#told.take()) : (this.#told.take() ?? this.#takeOther())
  }

  #takeOther(): string | undefined {
    const [first, second] = this.#takenOfOthers++ % 2 === 0 ? [this.#due, this.#found] : [this.#found, this.#due]
    return first.take() ?? second.take()
  }
}
