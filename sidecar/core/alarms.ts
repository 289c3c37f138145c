import type { Clock } from './clock.ts'

export interface Alarm {
  stop(): void
}

export interface Alarms {
  /** Calls `ring` every `ms` milliseconds, until the alarm is stopped. */
  set(ms: number, ring: () => void): Alarm
}

interface Waiting {
  until: number
  readonly ring: () => void
}

/** Creates alarms by the hundred: alarms with the same interval share one timer. */
export function createAlarms(clock: Clock): Alarms {
  const groups = new Map<number, Group>()
  return {
    set(ms, ring) {
      let group = groups.get(ms)
      if (!group) groups.set(ms, (group = new Group(clock, ms, () => groups.delete(ms))))
      return group.add(ring)
    },
  }
}

class Group {
  readonly #clock: Clock
  readonly #ms: number
  /** In the order of due times: an alarm moves to the end when its interval restarts. */
  readonly #waiting = new Set<Waiting>()
  readonly #ending = new AbortController()
  readonly #onEmpty: () => void

  constructor(clock: Clock, ms: number, onEmpty: () => void) {
    this.#clock = clock
    this.#ms = Math.max(1, ms)
    this.#onEmpty = onEmpty
  }

  add(ring: () => void): Alarm {
    const waiting = { until: 0, ring }
    this.#begin(waiting)
    if (this.#waiting.size === 1) void this.#run()
    return { stop: () => this.#stop(waiting) }
  }

  #begin(waiting: Waiting): void {
    waiting.until = this.#clock.ticks() + this.#ms
    this.#waiting.delete(waiting)
    this.#waiting.add(waiting)
  }

  #stop(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting) || this.#waiting.size > 0) return
    this.#ending.abort()
    this.#onEmpty()
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending
    while (!signal.aborted) {
      const [next] = this.#waiting
      await this.#clock.sleep(Math.max(0, next!.until - this.#clock.ticks()), signal).catch(() => undefined)
      for (const waiting of this.#waiting) {
        if (waiting.until > this.#clock.ticks()) break
        this.#begin(waiting)
        waiting.ring()
      }
    }
  }
}
