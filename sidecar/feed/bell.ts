import { Condition } from '../core/condition.ts'

/** Tells a reader that there may be something to read, and others whether that has been read. */
export class Bell {
  readonly #changes = new Condition()
  #rung = 0
  #answered = 0

  /** Whether it was rung, and what it was rung for may not have been read. */
  get isRinging(): boolean {
    return this.#rung > this.#answered
  }

  ring(): void {
    this.#rung += 1
    this.#changes.changed()
  }

  /** Resolves while it rings, with what to `answer`. Rejects with the signal's reason. */
  async hear(signal: AbortSignal): Promise<number> {
    await this.#changes.until(() => this.isRinging, signal)
    return this.#rung
  }

  /** Everything is read that there was when it was heard. */
  answer(heard: number): void {
    this.#answered = heard
  }
}
