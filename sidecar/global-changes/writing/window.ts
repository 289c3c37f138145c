import type { Clock } from '../../core/clock.ts'

export interface WindowOptions {
  readonly clock: Clock
  /** How long after its first member a set is handed on, milliseconds. May change. */
  readonly delayMs: () => number
  /** Gets every set, never an empty one. */
  readonly onClose: (members: ReadonlySet<string>) => void
}

/** Gathers names. However often one comes within the window, it is handed on once. */
export class Window {
  readonly #options: WindowOptions
  #members = new Set<string>()
  #openedAt = 0
  #waiting: AbortController | undefined

  constructor(options: WindowOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#members.size
  }

  /** When its first member came, by the clock's ticks; undefined if it has none. */
  get since(): number | undefined {
    return this.#members.size > 0 ? this.#openedAt : undefined
  }

  add(members: Iterable<string>): void {
    const wasEmpty = this.#members.size === 0
    for (const member of members) this.#members.add(member)
    if (!wasEmpty || this.#members.size === 0) return
    this.#openedAt = this.#options.clock.ticks()
    void this.#wait()
  }

  /** The delay may have changed: what is gathered goes by the new one. */
  recheck(): void {
    this.#waiting?.abort()
    if (this.#members.size > 0) void this.#wait()
  }

  /** Forgets what is gathered. */
  clear(): void {
    this.#waiting?.abort()
    this.#members.clear()
  }

  /** Hands on what is gathered, now. */
  flush(): void {
    this.#waiting?.abort()
    const members = this.#members
    if (members.size === 0) return
    this.#members = new Set()
    this.#options.onClose(members)
  }

  async #wait(): Promise<void> {
    const { clock, delayMs } = this.#options
    const waiting = (this.#waiting = new AbortController())
    const restMs = Math.max(0, this.#openedAt + delayMs() - clock.ticks())
    await clock.sleep(restMs, waiting.signal).catch(() => undefined)
    if (!waiting.signal.aborted) this.flush()
  }
}
