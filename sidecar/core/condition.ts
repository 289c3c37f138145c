import { onAbort } from './on-abort.ts'

/** Waits for a condition to become true. The code that changes the condition calls `changed`. */
export class Condition {
  readonly #waiting = new Set<() => void>()

  /** Resolves when `holds` returns true. Rejects with the signal's reason. */
  async until(holds: () => boolean, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    while (!holds()) {
      await this.#change(signal)
      signal?.throwIfAborted()
    }
  }

  changed(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        stopListening()
        this.#waiting.delete(wake)
        if (signal?.aborted) reject(signal.reason as Error)
        else resolve()
      }
      const stopListening = onAbort(signal, wake)
      this.#waiting.add(wake)
    })
  }
}
