import { Condition } from '../core/condition.ts'

/** Tells a reader that there may be something to read. Rung while nobody listens, it is heard later, once. */
export class Bell {
  readonly #changes = new Condition()
  #rung = 0
  #heard = 0

  /** Whether it was rung after it was last heard. */
  get isRinging(): boolean {
    return this.#rung > this.#heard
  }

  ring(): void {
    this.#rung += 1
    this.#changes.changed()
  }

  /** Resolves when it rings; from then on it is heard. Rejects with the signal's reason. */
  async hear(signal: AbortSignal): Promise<void> {
    await this.#changes.until(() => this.isRinging, signal)
    this.#heard = this.#rung
  }
}
