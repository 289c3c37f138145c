/**
 * Bounds memory by bytes in flight, not by number of documents. `enter` waits until there is room; an item larger
 * than the whole budget is let in alone. First come, first served.
 */
export class ByteGate {
  #inFlight = 0
  #full = false
  readonly #low = new Set<() => void>()
  readonly #waiting: { bytes: number; admit: () => void }[] = []

  readonly budget: number

  /** @param budget bytes that may be in flight at once */
  constructor(budget: number) {
    this.budget = budget
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Somebody had to wait, and more than half has been in flight since. */
  get full(): boolean {
    return this.#full
  }

  /** Lets the bytes in if that can be at once. */
  tryEnter(bytes: number): boolean {
    const room = this.#waiting.length === 0 && (this.#inFlight === 0 || this.#inFlight + bytes <= this.budget)
    if (room) this.#inFlight += bytes
    return room
  }

  /** Resolves when the bytes are let in; rejects with the signal's reason. Each enter needs one `leave`. */
  async enter(bytes: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.tryEnter(bytes)) return
    this.#full = true
    await new Promise<void>((resolve, reject) => {
      const entry = {
        bytes,
        admit: () => {
          signal.removeEventListener('abort', abort)
          resolve()
        },
      }
      const abort = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1)
        reject(signal.reason as Error)
        this.#admit()
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.push(entry)
    })
  }

  leave(bytes: number): void {
    this.#inFlight -= bytes
    this.#admit()
    if (this.#full && this.#inFlight <= this.budget / 2) this.#ebb()
  }

  /**
   * For a source that fetches much at a time: resolves at once, or after the gate was full when half of it is free.
   * Rejects with the signal's reason.
   */
  async whenLow(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (!this.#full) return
    await new Promise<void>((resolve, reject) => {
      const settle = () => {
        signal.removeEventListener('abort', settle)
        this.#low.delete(settle)
        if (signal.aborted) reject(signal.reason as Error)
        else resolve()
      }
      signal.addEventListener('abort', settle, { once: true })
      this.#low.add(settle)
    })
  }

  #ebb(): void {
    this.#full = false
    for (const settle of [...this.#low]) settle()
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if (this.#inFlight > 0 && this.#inFlight + next.bytes > this.budget) return
      this.#waiting.shift()
      this.#inFlight += next.bytes
      next.admit()
    }
  }
}
