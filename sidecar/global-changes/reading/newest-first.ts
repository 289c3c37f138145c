import { SEQ_ZERO, type Seq } from '../../couch/documents.ts'
import { NOW, type History } from './history.ts'
import type { Reading } from './reading.ts'
import type { Update, Viewer } from './update.ts'

/** The rows that are there, the last one first. It never waits for new ones, and is not behind when it has all. */
export class NewestFirst implements Reading {
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
    const abort = () => this.#ending.abort(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      this.#rows ??= await this.#begin()
      const { done, value } = await this.#rows.next()
      this.#isBehind = !done
      const wanted = (value ?? []).filter((update) => update.isFor(this.#viewer)).slice(0, most)
      this.#lastSeq = wanted.at(-1)?.seq ?? this.#lastSeq
      return wanted
    } finally {
      signal.removeEventListener('abort', abort)
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
