/** A first-in, first-out queue of names, each at most once, with a delay queue beside it. */
export class Queue {
  readonly #waiting = new Set<string>()
  /** Due time of each delayed name, in the clock's ticks. */
  readonly #later = new Map<string, number>()

  get size(): number {
    return this.#waiting.size
  }

  get resubmitted(): number {
    return this.#later.size
  }

  /** Whether the name is queued. A delayed name is not. */
  has(name: string): boolean {
    return this.#waiting.has(name)
  }

  /** Queues the name now, even if it was delayed. */
  add(name: string): void {
    this.#later.delete(name)
    this.#waiting.add(name)
  }

  /** Queues the name at this time, in the clock's ticks, unless it is due earlier. */
  addAt(name: string, at: number): void {
    if (!this.#waiting.has(name)) this.#later.set(name, Math.min(at, this.#later.get(name) ?? at))
  }

  remove(name: string): void {
    this.#waiting.delete(name)
    this.#later.delete(name)
  }

  /** Removes and returns the name that has waited longest. */
  take(): string | undefined {
    const [name] = this.#waiting
    if (name !== undefined) this.#waiting.delete(name)
    return name
  }

  /** Queues the delayed names that are due. */
  ripen(now: number): void {
    for (const [name, at] of this.#later) if (at <= now) this.add(name)
  }

  /** Due time of the next delayed name. */
  nextAt(): number | undefined {
    let next: number | undefined
    for (const at of this.#later.values()) if (next === undefined || at < next) next = at
    return next
  }
}
