import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { Change } from '../../feed/change.ts'
import type { Progress } from '../../feed/progress.ts'
import type { Partition } from '../../workers/partitioning.ts'
import { isIdle, type Classify } from '../classify.ts'
import type { Dispatch } from '../dispatch.ts'
import type { Backlog } from './backlog.ts'
import { UNREADABLE_MS } from './read-and-dispatch.ts'
import { MOST, type ReadInParts } from './read.ts'

export interface RowDispatcherOptions {
  readonly partition: Partition
  readonly classify: Classify
  readonly dispatch: Dispatch
  readonly backlog: Backlog
  readonly readInParts: ReadInParts
  readonly clock: Clock
  readonly random: Random
  /** Whether rows may now be older than a handler with `since: 'now'`. */
  readonly isEarly: () => boolean
  /** Whether the document is for a handler with `since: 'now'`, whose list shows whether the document is new. */
  readonly isLeftToList: (doc: StoredDoc) => boolean
  /** Called if the taken rows include a deleted document. */
  readonly onDeleted: () => void
  /** Called for each document in a state that its machine does not declare. */
  readonly onUndeclared: (doc: StoredDoc) => void
}

interface Found {
  readonly doc: StoredDoc
  readonly bytes: number
  /** Whether the document has changed since; checked again after each wait. */
  readonly isPast: () => boolean
  readonly isEarly: boolean
  readonly settled: () => void
}

interface Unread {
  /** Revision of the row. */
  readonly rev: string
  readonly isEarly: boolean
  readonly settled: () => void
}

/** Limit of unread rows: at this number the feed waits. */
const MOST_UNREAD = 5 * MOST
/** If more than this part of the rows is wanted, requesting all documents with the rows is cheaper. */
const WANTED = 1 / 2

/**
 * Brings the rows of a feed to the dispatch. If several workers share the work, rows come without documents. The
 * dispatcher reads those of its own partition while more rows come: the more work, the more documents in one read.
 */
export class RowDispatcher {
  readonly #options: RowDispatcherOptions
  readonly #changes = new Condition()
  /** Unread rows, by id. */
  #unread = new Map<string, Unread>()
  #reading = false
  #wantsDocs = true

  constructor(options: RowDispatcherOptions) {
    this.#options = options
  }

  /** Takes rows; `progress` records the outcome of each. Resolves when more rows may come. */
  async take(rows: readonly Change[], progress: Progress, signal: AbortSignal): Promise<void> {
    const { dispatch, classify, clock, onUndeclared, onDeleted } = this.#options
    const isEarly = this.#options.isEarly()
    let hasDeleted = false
    let wanted = 0
    for (const row of rows) {
      const { seq, id, rev, branched, doc, deleted, bytes } = row
      const classification = doc && !deleted ? classify(doc, clock.now()) : undefined
      if (doc && classification?.kind === 'undeclared') onUndeclared(doc)
      hasDeleted ||= deleted
      if (deleted || (classification && isIdle(classification))) {
        dispatch.pass(id, rev)
        progress.skip(seq)
      } else if (doc) {
        if (!dispatch.attempts.has(id)) wanted += 1
        const isPast = () => !doc._conflicts && !branched && dispatch.isPast(id, rev)
        await this.#offer({ doc, bytes, isPast, isEarly, settled: progress.begin(seq) }, signal)
      } else if (this.#isToRead(row)) {
        wanted += 1
        const settled = progress.begin(seq)
        this.#unread.get(id)?.settled() // the later row holds the checkpoint back
        this.#unread.set(id, { rev, isEarly, settled })
      } else progress.skip(seq)
    }
    this.#wantsDocs = wanted > rows.length * WANTED
    if (hasDeleted) onDeleted()
    this.#changes.changed()
    await this.#changes.until(() => this.#unread.size < MOST_UNREAD, signal)
  }

  /** Reads the documents of rows that came without them, until the signal aborts; rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#reading = false
      this.#changes.changed()
      await this.#changes.until(() => this.#unread.size > 0, signal)
      this.#reading = true
      const some = [...this.#unread].slice(0, MOST)
      for (const [id] of some) this.#unread.delete(id)
      await this.#readAndOffer(new Map(some), signal)
    }
  }

  /** Whether enough of the last rows needed their documents: most do not if this worker wrote them. */
  get wantsDocs(): boolean {
    return this.#wantsDocs
  }

  /** Whether documents wait to be read, or are being read. */
  get isReading(): boolean {
    return this.#unread.size > 0 || this.#reading
  }

  /** Resolves when `isReading` is false. */
  whenRead(): Promise<void> {
    return this.#changes.until(() => !this.isReading)
  }

  /** Skips other workers' documents: if their worker does nothing, the list has them. */
  #isToRead({ id, rev, branched }: Change): boolean {
    const { dispatch, partition } = this.#options
    return (
      !id.startsWith('_design/') && !dispatch.passUnread(id, rev, branched) && partition.isOursAnywhere(id) !== false
    )
  }

  async #offer({ doc, bytes, isPast, isEarly, settled }: Found, signal: AbortSignal): Promise<void> {
    const { dispatch, backlog, isLeftToList } = this.#options
    if (isEarly && isLeftToList(doc)) return settled()
    for (;;) {
      if (isPast()) return settled()
      const full = dispatch.offer(doc, bytes, settled)
      if (!full) return
      if (!(await backlog.hold(full, signal))) return settled()
    }
  }

  async #readAndOffer(unread: ReadonlyMap<string, Unread>, signal: AbortSignal): Promise<void> {
    const { dispatch, readInParts, clock, random } = this.#options
    const left = new Map(unread)
    const readAll = async () => {
      for await (const { ids, docs, failed, isStale } of readInParts(
        [...left.keys()],
        signal,
        (id) => left.get(id)?.rev,
      )) {
        for (const { doc, bytes } of docs) {
          const isPast = () => this.#unread.has(doc._id) || (isStale(doc._id) && (dispatch.lookAgain(doc._id), true))
          await this.#offer({ doc, bytes, isPast, ...left.get(doc._id)! }, signal)
          left.delete(doc._id)
        }
        for (const id of ids.filter((id) => left.has(id))) {
          const { isEarly, settled } = left.get(id)!
          if (!failed.includes(id)) dispatch.pass(id)
          else if (!isEarly) dispatch.lookAgain(id, UNREADABLE_MS) // if early, the list has it
          settled()
          left.delete(id)
        }
      }
    }
    try {
      await withRetries(readAll, { clock, random, signal })
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      for (const { settled } of left.values()) settled() // the database is gone, or the list will find them
    }
  }
}
