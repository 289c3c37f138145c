import { Queue } from '../core/queue.ts'

/** One of this many turns goes to a database that no event has named. */
const ONE_IN = 4

/**
 * Chooses the database that is visited next. Databases that an event has named go first, but never take every turn.
 * Due databases, and databases that only a sweep has found, alternate in turns of their own.
 */
export class FairQueue {
  readonly #named = new Queue()
  readonly #found = new Queue()
  readonly #due = new Queue()
  #taken = 0
  #takenOfOthers = 0

  /** Number of databases that wait now. */
  get size(): number {
    return this.#named.size + this.#found.size + this.#due.size
  }

  addNamed(name: string): void {
    this.#found.remove(name)
    this.#named.add(name)
  }

  find(name: string): void {
    this.#found.add(name)
  }

  /** Whether the database waits because of an event or a sweep. */
  hasNewsOf(name: string): boolean {
    return this.#named.has(name) || this.#found.has(name)
  }

  /** Schedules a database for this time, in ticks, unless it is scheduled earlier. */
  addAt(name: string, at: number): void {
    this.#due.addAt(name, at)
  }

  /** Moves the databases that are due by now into the queue. */
  ripen(now: number): void {
    this.#due.ripen(now)
  }

  /** When the next scheduled database is due, in ticks. */
  nextAt(): number | undefined {
    return this.#due.nextAt()
  }

  remove(name: string): void {
    for (const queue of [this.#named, this.#found, this.#due]) queue.remove(name)
  }

  take(): string | undefined {
    const isOthersTurn = this.#taken++ % ONE_IN === 0
    return isOthersTurn ? (this.#takeOther() ?? this.#named.take()) : (this.#named.take() ?? this.#takeOther())
  }

  #takeOther(): string | undefined {
    const [first, second] = this.#takenOfOthers++ % 2 === 0 ? [this.#due, this.#found] : [this.#found, this.#due]
    return first.take() ?? second.take()
  }
}
