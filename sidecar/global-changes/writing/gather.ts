import type { Clock } from '../../core/clock.ts'
import { eventId, type DatabaseEvent } from '../event-documents.ts'
import { bucketOf } from './ledger.ts'
import type { GlobalChangesSettings } from './event-settings.ts'
import type { BucketPartition } from './bucket-partition.ts'

export interface GatherOptions {
  readonly clock: Clock
  readonly settings: () => GlobalChangesSettings
  readonly partition: BucketPartition
  /** Whether events of this database are written. */
  readonly hasEvents: (database: string) => boolean
  /** Receives the ids that both windows have collected. */
  readonly write: (ids: Iterable<string>) => void
}

/** Collects events between their source and the writer, in two windows. Each window merges equal events. */
export class Gather {
  readonly #options: GatherOptions
  readonly #events: Window
  readonly #writes: Window

  constructor(options: GatherOptions) {
    const { clock, settings, write } = options
    this.#options = options
    this.#writes = new Window({ clock, delayMs: () => settings().max_write_delay, onClose: write })
    this.#events = new Window({
      clock,
      delayMs: () => settings().max_event_delay,
      onClose: (ids) => this.#writes.add(ids),
    })
  }

  /** Number of ids in each window. */
  get pending(): { readonly events: number; readonly writes: number } {
    return { events: this.#events.size, writes: this.#writes.size }
  }

  /** In clock ticks: when the oldest event entered its window; undefined if both are empty. */
  get since(): number | undefined {
    return this.#writes.since ?? this.#events.since
  }

  add(event: DatabaseEvent, database: string): void {
    const { settings, partition, hasEvents } = this.#options
    if (!settings().update_db || !hasEvents(database) || !partition.buckets().has(bucketOf(database))) return
    this.#events.add([eventId(event, database)])
  }

  /** Call this when the delays may have changed. */
  recheck(): void {
    this.#events.recheck()
    this.#writes.recheck()
  }

  /** Drops all events. */
  clear(): void {
    this.#events.clear()
    this.#writes.clear()
  }

  /** Passes on all events now. */
  flush(): void {
    this.#events.flush()
    this.#writes.flush()
  }
}

interface WindowOptions {
  readonly clock: Clock
  /** How long after its first member a set is passed on, milliseconds. May change. */
  readonly delayMs: () => number
  /** Receives every set, never an empty one. */
  readonly onClose: (members: ReadonlySet<string>) => void
}

/** Collects names. A name that arrives several times within the window is passed on once. */
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

  /** In clock ticks: when the first member arrived; undefined if the window is empty. */
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

  /** Applies a changed delay to the collected members. */
  recheck(): void {
    this.#waiting?.abort()
    if (this.#members.size > 0) void this.#wait()
  }

  /** Drops the collected members. */
  clear(): void {
    this.#waiting?.abort()
    this.#members.clear()
  }

  /** Passes on the collected members now. */
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
