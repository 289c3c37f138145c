import { onAbort } from '../../core/on-abort.ts'
import type { Logger } from 'pino'
import { createAlarms } from '../../core/alarms.ts'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { type Seq, SEQ_ZERO } from '../../couch/documents.ts'
import type { Events } from '../../events/channels.ts'
import { createHistory, NOW, type History } from './history.ts'
import { Hub } from './hub.ts'
import { Reader } from './reader.ts'
import type { Reading } from './reading.ts'
import type { Viewer, Update } from './update.ts'

export interface DbUpdatesOptions {
  /** For the one feed. */
  readonly couch: Couch
  /** For what readers ask. Default: the same. */
  readonly answering?: Couch
  /** The database that the events are written into. */
  readonly name: string
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface DbUpdatesCounts {
  /** Open now. */
  readonly readers: number
  /** That have come over the one feed. */
  readonly rows: number
  /** That readers have read because they were not at the end. */
  readonly pages: number
  /** How often a reader did not take what came, and had to read it again. */
  readonly slow: number
}

export interface OpenOptions {
  readonly viewer: Viewer
  readonly since: Seq
  /** The last row first, and none that come later; `since` is nothing then. */
  readonly descending: boolean
}

/** What has happened to which database, for any number of readers. */
export interface DbUpdates {
  /** Follows the feed until the signal aborts. Once only. */
  run(signal: AbortSignal): Promise<void>
  open(options: OpenOptions): Reading
  /** See `History`. */
  state(signal: AbortSignal): Promise<string>
  counts(): DbUpdatesCounts
}

export function createDbUpdates(options: DbUpdatesOptions): DbUpdates {
  const { couch, answering = couch, name, events, clock, random, log } = options
  const history = createHistory(answering, name)
  const hub = new Hub({ couch, name, history: createHistory(couch, name), events, clock, random, log })
  const alarms = createAlarms(clock)
  let started = false
  let pages = 0
  let slow = 0
  const onPage = () => void (pages += 1)
  const onSlow = () => void (slow += 1)

  return {
    async run(signal) {
      if (started) throw new Error(`the feed of ${name} was started twice`)
      started = true
      await hub.run(signal)
    },
    open({ viewer, since, descending }) {
      if (descending) return new NewestFirst({ history, viewer, onPage })
      const unsettledUntil = () => hub.unsettledUntil
      const onClose = () => void hub.readers.delete(reader)
      const told = { unsettledUntil, onPage, onSlow, onClose }
      const reader = new Reader({ history, viewer, since, alarms, clock, random, ...told })
      hub.readers.add(reader)
      return reader
    },
    state: (signal) => history.state(signal),
    counts: () => ({ readers: hub.readers.size, rows: hub.rows, pages, slow }),
  }
}

/** The rows that are there, the last one first. It never waits for new ones, and is not behind when it has all. */
class NewestFirst implements Reading {
  readonly #history: History
  readonly #viewer: Viewer
  readonly #onPage: () => void
  readonly #ending = new AbortController()
  #rows: AsyncGenerator<readonly Update[], void> | undefined
  #lastSeq: Seq = SEQ_ZERO
  #isBehind = true

  constructor({ history, viewer, onPage }: { history: History; viewer: Viewer; onPage: () => void }) {
    this.#history = history
    this.#viewer = viewer
    this.#onPage = onPage
  }

  get lastSeq(): Seq {
    return this.#lastSeq
  }

  get isBehind(): boolean {
    return this.#isBehind
  }

  async next(most: number, signal: AbortSignal): Promise<readonly Update[]> {
    signal.throwIfAborted()
    const stopListening = onAbort(signal, () => this.#ending.abort(signal.reason))
    try {
      this.#rows ??= await this.#begin()
      const { done, value } = await this.#rows.next()
      this.#isBehind = !done
      const wanted = (value ?? []).filter((update) => update.isFor(this.#viewer)).slice(0, most)
      this.#lastSeq = wanted.at(-1)?.seq ?? this.#lastSeq
      return wanted
    } finally {
      stopListening()
    }
  }

  close(): void {
    this.#ending.abort()
  }

  /** With none it is at the end of the feed. */
  async #begin(): Promise<AsyncGenerator<readonly Update[], void>> {
    this.#lastSeq = (await this.#history.page(NOW, 0, this.#ending.signal)).seq
    this.#onPage()
    return this.#history.newestFirst(this.#ending.signal)
  }
}
