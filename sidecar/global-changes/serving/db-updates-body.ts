import type { Logger } from 'pino'
import type { Alarms } from '../../core/alarms.ts'
import type { Reading } from '../reading/reading.ts'
import type { Update, Viewer } from '../reading/update.ts'
import { FORMATS, type Format } from './db-updates-format.ts'
import type { DbUpdatesQuery } from './db-updates-query.ts'

export interface BodyOptions {
  /** The body closes it at the end. */
  readonly reading: Reading
  readonly viewer: Viewer
  readonly query: DbUpdatesQuery
  readonly alarms: Alarms
  readonly log: Logger
  readonly onClose: () => void
}

const encoder = new TextEncoder()

/** The body of one answer. It reads more rows when its client has taken the last ones. */
export class Body {
  readonly stream: ReadableStream<Uint8Array>
  readonly #options: BodyOptions
  readonly #format: Format
  /** Whether a client takes a part of the body for the whole. */
  readonly #mustBeWhole: boolean
  readonly #ending = new AbortController()
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #left: number
  #hasRows = false
  #hasWaited = false
  /** The timeout has passed without a row. */
  #isOverdue = false
  #isOpen = true

  /** @param first rows that were read already; not kept, because a reader may wait for hours */
  constructor(options: BodyOptions, first: readonly Update[]) {
    const { feed, descending, limit } = options.query
    this.#options = options
    this.#format = FORMATS[feed]
    this.#mustBeWhole = feed === 'normal' || descending
    this.#left = limit
    this.stream = new ReadableStream({
      start: (controller) => void (this.#controller = controller),
      pull: () => this.#pull(),
      cancel: () => {
        this.#close()
        this.#ending.abort()
      },
    })
    this.#write(this.#format.head)
    this.#writeRows(first)
  }

  /** Ends the body properly, with the sequence to resume from. A body that must be whole continues to its end. */
  end(): void {
    if (!this.#mustBeWhole) this.#ending.abort()
  }

  async #pull(): Promise<void> {
    const { query, alarms, log } = this.#options
    const alarm = alarms.set(query.heartbeatMs ?? query.timeoutMs, () => this.#onQuiet())
    try {
      while (!(await this.#goOn()));
    } catch (thrown) {
      log.warn({ err: thrown }, 'an answer to _db_updates broke off')
      this.#close()
      throw new Error('the answer broke off') // node-server prints it
    } finally {
      alarm.stop()
    }
  }

  /** Returns false if nothing was written. */
  async #goOn(): Promise<boolean> {
    const { reading } = this.#options
    if (this.#isComplete()) {
      this.#write(this.#format.end(reading.lastSeq))
      if (this.#isOpen) this.#controller.close()
      this.#close()
      return true
    }
    if (!reading.isBehind && !this.#hasRows && !this.#hasWaited) {
      this.#hasWaited = true
      return this.#write(this.#format.waiting(reading.lastSeq))
    }
    return this.#writeRows(await this.#read())
  }

  #isComplete(): boolean {
    if (this.#ending.signal.aborted || this.#left <= 0) return true
    const { reading, query } = this.#options
    return !reading.isBehind && (this.#mustBeWhole || this.#isOverdue || (query.feed === 'longpoll' && this.#hasRows))
  }

  async #read(): Promise<readonly Update[]> {
    const { signal } = this.#ending
    try {
      return await this.#options.reading.next(this.#left, signal)
    } catch (thrown) {
      if (signal.aborted) return []
      throw thrown
    }
  }

  #onQuiet(): void {
    const { reading, query } = this.#options
    if (query.heartbeatMs === undefined) {
      if (reading.isBehind) this.#isOverdue = true
      else this.end()
    } else if (this.#controller.desiredSize! > 0) this.#write(this.#format.beat) // a slow reader needs none
  }

  #writeRows(updates: readonly Update[]): boolean {
    if (updates.length === 0) return false
    const { viewer } = this.#options
    const rows = updates.map((update) => ({ seq: update.seq, json: update.textFor(viewer) }))
    this.#write(this.#format.rows(rows, !this.#hasRows))
    this.#left -= updates.length
    this.#hasRows = true
    this.#isOverdue = false
    return true
  }

  #write(text: string): boolean {
    if (text !== '' && this.#isOpen) this.#controller.enqueue(encoder.encode(text))
    return text !== ''
  }

  #close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#options.reading.close()
    this.#options.onClose()
  }
}
