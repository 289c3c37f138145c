import type { Seq } from '../couch/documents.ts'

/** A row of the feed that the mark has not passed. */
interface Step {
  readonly seq: Seq
  settled: boolean
  before: Step | undefined
  after: Step | undefined
}

/**
 * Progress of a feed: the mark is the last row with no open row before it. Rows settle in any order. The mark passes a
 * row only when that row and all earlier rows are settled. So the stored checkpoint never runs ahead of the work.
 *
 * The list keeps only the last of several adjacent settled rows. So it is never longer than twice the open rows, even
 * if one row takes long.
 */
export class Progress {
  #mark: Seq | undefined
  #open = 0
  #first: Step | undefined
  #last: Step | undefined

  /** The checkpoint to resume from after a restart; undefined until the mark first moves. */
  get mark(): Seq | undefined {
    return this.#mark
  }

  /** How many rows are open. */
  get open(): number {
    return this.#open
  }

  /** Adds the next row of the feed, without work. */
  skip(seq: Seq): void {
    if (this.#last === undefined) this.#mark = seq
    else this.#settle(this.#append(seq))
  }

  /** Adds the next row of the feed. Call the result when its work is settled: done, or durably recorded. */
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
    step.before = step.after = undefined // otherwise V8 keeps later dead steps in memory through this one
  }
}
