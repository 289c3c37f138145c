/**
 * For how long things have stayed the same, by a clock that never jumps: what is at rest for its whole time counts as
 * dead. Times that others wrote are never compared with ours.
 */
export class Stillness {
  readonly #seen = new Map<string, { mark: string; since: number }>()
  readonly #ticks: () => number

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How many things are watched. */
  get size(): number {
    return this.#seen.size
  }

  /** 0 if `name` has had the same mark for `ms`; otherwise in how many milliseconds it will have, if nothing changes. */
  remaining(name: string, mark: string, ms: number): number {
    const seen = this.#seen.get(name)
    if (seen?.mark !== mark) {
      this.#seen.set(name, { mark, since: this.#ticks() })
      return ms
    }
    return Math.max(0, Math.ceil(ms - (this.#ticks() - seen.since)))
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }
}
