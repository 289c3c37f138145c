/** Milliseconds: from a handler that only computes to one that waits for another server. */
const UP_TO_MS = [1, 5, 25, 100, 500, 2_500, 10_000, 60_000]

/** A histogram of durations. Its size does not depend on their number. */
export class Histogram {
  /** Durations per range: above the previous limit, up to its own in `UP_TO_MS`. The last has no limit. */
  readonly #counts = [...UP_TO_MS, Infinity].map(() => 0)
  #sumMs = 0

  add(ms: number): void {
    let range = 0
    while (range < UP_TO_MS.length && ms > UP_TO_MS[range]!) range += 1
    this.#counts[range]! += 1
    this.#sumMs += ms
  }

  get sumMs(): number {
    return this.#sumMs
  }

  /** Number of durations up to each limit; the last counts all. */
  upTo(): { readonly ms: number; readonly count: number }[] {
    let count = 0
    return this.#counts.map((more, range) => ({ ms: UP_TO_MS[range] ?? Infinity, count: (count += more) }))
  }
}
