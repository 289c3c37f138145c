import type { Seq } from '../couch/documents.ts'

/** A row of the feed in a list of those not yet passed. */
interface Step {
  readonly seq: Seq
  settled: boolean
  before: Step | undefined
  after: Step | undefined
}

/**
 * How far a feed has been dealt with: the last row before which nothing is open. Rows settle in any order; the mark
 * moves only over a row when it and all before it are settled, so that what is stored never runs ahead of the work.
 *
 * Of neighbours that are settled only the last is kept, so the list is never longer than twice the open rows,
 * however long one of them takes.
 */
export class Progress {
  #mark: Seq | undefined
  #open = 0
  #first: Step | undefined
  #last: Step | undefined

  /** The checkpoint to go on from after a restart; undefined as long as nothing was settled. */
  get mark(): Seq | undefined {
    return this.#mark
  }

  /** How many rows are open. */
  get open(): number {
    return this.#open
  }

  /** The next row of the feed, that needs no work. */
  skip(seq: Seq): void {
    if (this.#last === undefined) this.#mark = seq
    else this.#settle(this.#append(seq))
  }

  /** The next row of the feed; call the answer when its work is settled: done, or recorded where it is not forgotten. */
  begin(seq: Seq): () => void {
    const step = this.#append(seq)
    this.#open += 1
    return () => {
      if (step.settled) return
      this.#open -= 1
      this.#settle(step)
    }
  }

  #append(seq: Seq): Step {
    const step: Step = { seq, settled: false, before: this.#last, after: undefined }
    if (this.#last) this.#last.after = step
    else this.#first = step
    this.#last = step
    return step
  }

  #settle(step: Step): void {
    step.settled = true
    if (step.before?.settled) this.#remove(step.before)
    if (step.after?.settled) this.#remove(step)
    const first = this.#first
    if (first?.settled) {
      this.#mark = first.seq
      this.#remove(first)
    }
  }

  #remove(step: Step): void {
    if (step.before) step.before.after = step.after
    else this.#first = step.after
    if (step.after) step.after.before = step.before
    else this.#last = step.before
    step.before = step.after = undefined // or V8 would carry along whatever comes after it, dead as it is
  }
}
