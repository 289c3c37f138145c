import { Condition } from '../core/condition.ts'

/** Signals to a reader that new changes may exist, and to others whether the reader has read them. */
export class Bell {
  readonly #changes = new Condition()
  #rung = 0
  #answered = 0

  /** Whether the bell was rung and its reader may not have read everything. */
  get isRinging(): boolean {
    return this.#rung > this.#answered
  }

  /** How often the bell was rung. */
  get rung(): number {
    return this.#rung
  }

  ring(): void {
    this.#rung += 1
    this.#changes.changed()
  }

  /** Resolves while the bell rings, with the value for `answer`. Rejects with the signal's reason. */
  async wait(signal: AbortSignal): Promise<number> {
    await this.#changes.until(() => this.isRinging, signal)
    return this.#rung
  }

  /** Confirms that the reader has read everything that existed at `wait`. */
  answer(rung: number): void {
    this.#answered = rung
  }
}
