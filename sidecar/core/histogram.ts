/** Milliseconds: from a handler that only computes to one that waits for another server. */
const UP_TO_MS = [1, 5, 25, 100, 500, 2_500, 10_000, 60_000]

/** How long things took, as a histogram: so many numbers, however many things there were. */
export class Histogram {
  /** How many took longer than the one before and no longer than `UP_TO_MS`; the last are those that took longer than all. */
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

  /** How many took so long at most, for each range; of all, the last. */
  upTo(): { readonly ms: number; readonly count: number }[] {
    let count = 0
    return this.#counts.map((more, range) => ({ ms: UP_TO_MS[range] ?? Infinity, count: (count += more) }))
  }
}
