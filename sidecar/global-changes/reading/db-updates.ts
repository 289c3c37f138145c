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
  /** Client for the one feed. */
  readonly couch: Couch
  /** Client for requests of readers. Default: `couch`. */
  readonly answering?: Couch
  /** The database with the event documents. */
  readonly name: string
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface DbUpdatesCounts {
  /** Open readers. */
  readonly readers: number
  /** Rows that arrived over the one feed. */
  readonly rows: number
  /** Pages that readers read because they were not at the end. */
  readonly pages: number
  /** How often a reader did not take its rows in time, and had to read them again. */
  readonly slow: number
}

export interface OpenOptions {
  readonly viewer: Viewer
  readonly since: Seq
  /** Latest row first, without later rows; `since` is ignored then. */
  readonly descending: boolean
}

/** Serves database events to any number of readers. */
export interface DbUpdates {
  /** Follows the feed until the signal aborts. Call it once only. */
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
      const callbacks = { unsettledUntil, onPage, onSlow, onClose }
      const reader = new Reader({ history, viewer, since, alarms, clock, random, ...callbacks })
      hub.readers.add(reader)
      return reader
    },
    state: (signal) => history.state(signal),
    counts: () => ({ readers: hub.readers.size, rows: hub.rows, pages, slow }),
  }
}

/** Reads the existing rows, latest first. It never waits for new rows, and is not behind when it has all. */
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

  /** Sets `lastSeq` to the end of the feed, which is correct if no row follows. */
  async #begin(): Promise<AsyncGenerator<readonly Update[], void>> {
    this.#lastSeq = (await this.#history.page(NOW, 0, this.#ending.signal)).seq
    this.#onPage()
    return this.#history.newestFirst(this.#ending.signal)
  }
}
