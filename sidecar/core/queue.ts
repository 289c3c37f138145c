/** Names that wait, each once, first in, first out; and names that come later. */
export class Queue {
  readonly #waiting = new Set<string>()
  /** When each comes, by the clock's ticks. */
  readonly #later = new Map<string, number>()

  get size(): number {
    return this.#waiting.size
  }

  get resubmitted(): number {
    return this.#later.size
  }

  /** Whether it waits. */
  has(name: string): boolean {
    return this.#waiting.has(name)
  }

  /** Now; also a name that was to come later. */
  add(name: string): void {
    this.#later.delete(name)
    this.#waiting.add(name)
  }

  /** At this time, if it was not to come earlier. */
  addAt(name: string, at: number): void {
    if (!this.#waiting.has(name)) this.#later.set(name, Math.min(at, this.#later.get(name) ?? at))
  }

  remove(name: string): void {
    this.#waiting.delete(name)
    this.#later.delete(name)
  }

  /** The one that has waited longest. */
  take(): string | undefined {
    const [name] = this.#waiting
    if (name !== undefined) this.#waiting.delete(name)
    return name
  }

  /** Those whose time has come wait from now on. */
  ripen(now: number): void {
    for (const [name, at] of this.#later) if (at <= now) this.add(name)
  }

  /** When the next one's time comes. */
  nextAt(): number | undefined {
    let next: number | undefined
    for (const at of this.#later.values()) if (next === undefined || at < next) next = at
    return next
  }
}
