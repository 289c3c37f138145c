import type { Clock } from '../../core/clock.ts'
import { eventId, type DatabaseEvent } from '../event-documents.ts'
import { bucketOf } from './ledger.ts'
import type { GlobalChangesSettings } from './event-settings.ts'
import type { BucketPartition } from './bucket-partition.ts'

export interface GatherOptions {
  readonly clock: Clock
  readonly settings: () => GlobalChangesSettings
  readonly partition: BucketPartition
  /** Whether this database has events at all. */
  readonly hasEvents: (database: string) => boolean
  /** Gets what two windows have gathered. */
  readonly write: (ids: Iterable<string>) => void
}

/** The way of an event from its source to the writer: two windows, in each of which equal events are one. */
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

  /** How many are in each window. */
  get pending(): { readonly events: number; readonly writes: number } {
    return { events: this.#events.size, writes: this.#writes.size }
  }

  /** When the first came to the window that it is in, by the clock's ticks; undefined if there is none. */
  get since(): number | undefined {
    return this.#writes.since ?? this.#events.since
  }

  tell(event: DatabaseEvent, database: string): void {
    const { settings, partition, hasEvents } = this.#options
    if (!settings().update_db || !hasEvents(database) || !partition.buckets().has(bucketOf(database))) return
    this.#events.add([eventId(event, database)])
  }

  /** The delays may have changed. */
  recheck(): void {
    this.#events.recheck()
    this.#writes.recheck()
  }

  /** Forgets everything. */
  clear(): void {
    this.#events.clear()
    this.#writes.clear()
  }

  /** Hands on everything now. */
  flush(): void {
    this.#events.flush()
    this.#writes.flush()
  }
}

interface WindowOptions {
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
