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
  /** Whether what comes now may have been there before a handler that takes only what is new. */
  readonly isEarly: () => boolean
  /** Whether it is such a handler's, and its list tells whether it is new. */
  readonly isLeftToList: (doc: StoredDoc) => boolean
  /** Among the rows that were taken is one of a deleted document. */
  readonly onDeleted: () => void
  /** Among the rows that were taken is a document in a state that its machine does not declare. */
  readonly onUndeclared: () => void
}

interface Found {
  readonly doc: StoredDoc
  readonly bytes: number
  /** Whether something later has become of it: asked anew after each wait. */
  readonly isPast: () => boolean
  readonly isEarly: boolean
  readonly settled: () => void
}

interface Unread {
  readonly isEarly: boolean
  readonly settled: () => void
}

/** So many wait to be read; then the feed waits. */
const MOST_UNREAD = 5 * MOST
/** Where more than this part of the rows is wanted, it is cheaper to have all documents with them. */
const WANTED = 1 / 2

/**
 * Brings the rows of a feed to the dispatch. Where several workers share the work they come without documents, and those
 * of our own partition are read, while more rows come: the more there is to do, the more are read together.
 */
export class RowDispatcher {
  readonly #options: RowDispatcherOptions
  readonly #changes = new Condition()
  /** By id. */
  #unread = new Map<string, Unread>()
  #reading = false
  #wantsDocs = true

  constructor(options: RowDispatcherOptions) {
    this.#options = options
  }

  /** Resolves when there is room for more; `progress` learns what becomes of each row. */
  async take(rows: readonly Change[], progress: Progress, signal: AbortSignal): Promise<void> {
    const { dispatch, classify, clock, onUndeclared, onDeleted } = this.#options
    const isEarly = this.#options.isEarly()
    let hasUndeclared = false
    let hasDeleted = false
    let wanted = 0
    for (const row of rows) {
      const { seq, id, rev, branched, doc, deleted, bytes } = row
      const classification = doc && !deleted ? classify(doc, clock.now()) : undefined
      hasUndeclared ||= classification?.kind === 'undeclared'
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
        this.#unread.get(id)?.settled() // the later row holds the place
        this.#unread.set(id, { isEarly, settled })
      } else progress.skip(seq)
    }
    this.#wantsDocs = wanted > rows.length * WANTED
    if (hasUndeclared) onUndeclared()
    if (hasDeleted) onDeleted()
    this.#changes.changed()
    await this.#changes.until(() => this.#unread.size < MOST_UNREAD, signal)
  }

  /** Reads what came by without its document, until the signal aborts; rejects with its reason. */
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

  /** Whether enough of the last rows were read for their documents: most are not if we wrote them ourselves. */
  get wantsDocs(): boolean {
    return this.#wantsDocs
  }

  /** Whether something waits to be read, or is being read. */
  get isReading(): boolean {
    return this.#unread.size > 0 || this.#reading
  }

  /** Resolves when nothing is. */
  whenRead(): Promise<void> {
    return this.#changes.until(() => !this.isReading)
  }

  /** What is another worker's is not looked at: if that one does nothing about it, the list has it. */
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
      for await (const { ids, docs, failed, isStale } of readInParts([...left.keys()], signal)) {
        for (const { doc, bytes } of docs) {
          const isPast = () => this.#unread.has(doc._id) || (isStale(doc._id) && (dispatch.lookAgain(doc._id), true))
          await this.#offer({ doc, bytes, isPast, ...left.get(doc._id)! }, signal)
          left.delete(doc._id)
        }
        for (const id of ids.filter((id) => left.has(id))) {
          const { isEarly, settled } = left.get(id)!
          if (!failed.includes(id)) dispatch.pass(id)
          else if (!isEarly) dispatch.lookAgain(id, UNREADABLE_MS) // or the list has it
          settled()
          left.delete(id)
        }
      }
    }
    try {
      await withRetries(readAll, { clock, random, signal })
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      for (const { settled } of left.values()) settled() // the database has gone, or the list will have them
    }
  }
}
