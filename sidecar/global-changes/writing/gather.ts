import type { Clock } from '../../core/clock.ts'
import { eventId, type DatabaseEvent } from '../documents.ts'
import { bucketOf } from './ledger.ts'
import type { GlobalChangesSettings } from './settings.ts'
import type { BucketPartition } from './bucket-partition.ts'
import { Window } from './window.ts'

export interface GatherOptions {
  readonly clock: Clock
  readonly settings: () => GlobalChangesSettings
  readonly partition: BucketPartition
  /** Whether this database has events at all. */
  readonly hasEvents: (database: string) => boolean
  /** Gets what two windows have gathered. */
  readonly write: (ids: Iterable<string>) => void
}

/** The way of an event from whoever tells of it to the writer: two windows, in each of which the same again is one. */
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
