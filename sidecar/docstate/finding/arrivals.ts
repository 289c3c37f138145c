import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { CouchError } from '../../couch/errors.ts'
import { patiently } from '../../couch/patiently.ts'
import type { Change } from '../../feed/change.ts'
import type { Progress } from '../../feed/progress.ts'
import type { Part } from '../../workers/sharing.ts'
import type { Assess } from '../assess.ts'
import type { Dispatch } from '../dispatch.ts'
import type { Backlog } from './backlog.ts'
import { readInParts } from './read.ts'

export interface ArrivalsOptions {
  readonly database: Database
  readonly part: Part
  readonly assess: Assess
  readonly dispatch: Dispatch
  readonly backlog: Backlog
  readonly clock: Clock
  readonly random: Random
}

interface Arrival {
  readonly doc: StoredDoc
  readonly bytes: number
  /** Whether something later has become of it: asked anew after each wait. */
  readonly isPast: () => boolean
  readonly settled: () => void
}

/**
 * Brings the rows of a feed to the dispatch. Where several workers share the work they come without documents, and those
 * of our own part are read together: reading all of them in every worker would cost more than the work.
 */
export class Arrivals {
  readonly #options: ArrivalsOptions

  constructor(options: ArrivalsOptions) {
    this.#options = options
  }

  /** Resolves when there is room for more; `progress` learns what becomes of each row. */
  async take(rows: readonly Change[], progress: Progress, signal: AbortSignal): Promise<void> {
    const unread = new Map<string, () => void>()
    for (const { seq, id, rev, doc, deleted, bytes } of rows) {
      if (deleted || this.#asksForNothing(doc)) {
        this.#options.dispatch.pass(id, rev)
        progress.skip(seq)
      } else if (doc) {
        const isPast = () => this.#options.dispatch.isPast(id, rev)
        await this.#offer({ doc, bytes, isPast, settled: progress.begin(seq) }, signal)
      } else if (this.#isToRead(id, rev)) {
        const [before, settled] = [unread.get(id), progress.begin(seq)]
        unread.set(id, () => (before?.(), settled()))
      } else progress.skip(seq)
    }
    if (unread.size > 0) await this.#readAndOffer(unread, signal)
  }

  #asksForNothing(doc: StoredDoc | undefined): boolean {
    const { assess, clock } = this.#options
    return doc !== undefined && assess(doc, clock.now()).kind === 'ignore'
  }

  /** What is another worker's is not looked at: if that one does nothing about it, the list has it. */
  #isToRead(id: string, rev: string): boolean {
    const { dispatch, part } = this.#options
    return !id.startsWith('_design/') && !dispatch.passUnread(id, rev) && part.isOursAnywhere(id) !== false
  }

  async #offer({ doc, bytes, isPast, settled }: Arrival, signal: AbortSignal): Promise<void> {
    const { dispatch, backlog } = this.#options
    for (;;) {
      if (isPast()) return settled()
      const full = dispatch.offer(doc, bytes, settled)
      if (!full) return
      if (!(await backlog.hold(full, signal))) return settled()
    }
  }

  async #readAndOffer(unread: Map<string, () => void>, signal: AbortSignal): Promise<void> {
    const { database, dispatch, clock, random } = this.#options
    const read = (ids: readonly string[]) =>
      patiently(() => database.getMany(ids, { signal }), { clock, random, signal })
    try {
      for await (const { ids, docs, isStale } of readInParts(read, [...unread.keys()], dispatch.flights)) {
        const missing = new Set(ids)
        for (const { doc, bytes } of docs) {
          missing.delete(doc._id)
          const isPast = () => isStale(doc._id) && (dispatch.lookAgain(doc._id), true)
          await this.#offer({ doc, bytes, isPast, settled: unread.get(doc._id)! }, signal)
        }
        for (const id of missing) {
          dispatch.pass(id)
          unread.get(id)!()
        }
      }
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof CouchError)) throw thrown
      for (const settled of unread.values()) settled() // the database has gone, or the list will have them
    }
  }
}
