import type { Alarm, Alarms } from '../../core/alarms.ts'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import { compareRevs, SEQ_ZERO, seqText, type Seq } from '../../couch/documents.ts'
import type { CouchError } from '../../couch/couch-errors.ts'
import { withRetries } from '../../couch/with-retries.ts'
import { HEARTBEAT_MS } from '../../feed/follow.ts'
import type { History, Page } from './history.ts'
import type { Reading } from './reading.ts'
import type { Update, Viewer } from './update.ts'

export interface ReaderOptions {
  readonly history: History
  readonly viewer: Viewer
  readonly since: Seq
  /** In clock ticks: until then, a page may lack rows that the hub has delivered. */
  readonly unsettledUntil: () => number
  readonly alarms: Alarms
  readonly clock: Clock
  readonly random: Random
  readonly onPage: () => void
  /** Called when the reader did not take its rows in time. */
  readonly onSlow: () => void
  readonly onClose: () => void
}

const PAGE = 500
/** Maximum number of rows for a reader that does not take them. */
const MOST_GATHERED = 1000
/** How often a reader checks whether it may forget pages, and whether it has settled. */
const TIDY_MS = 1000
/**
 * How long after a page the hub may still deliver its rows. CouchDB may miss a write that arrives while a feed starts:
 * it sends that row with the next one, or at the heartbeat.
 */
const LATE_MS = HEARTBEAT_MS + 1000
/** Pause of a settling reader between two pages, if the first lacks a row that the hub has delivered. */
const LAG_MS = 200
/** A missing database may be created again: a reader waits for it, as the hub does. */
const retryOf = ({ code, retry }: CouchError) => (code === 'not_found' ? 'soon' : retry)

/**
 * A reader of the feed. While it is *behind*, it reads its own pages. Before the last page, it starts to gather rows
 * from the hub, so that no row is lost in between. Then it is *live*: it hands out gathered rows. If they become too
 * many, it drops them and is behind again: the pages contain them all.
 *
 * On a cluster, a page may come from a copy that lacks rows which the hub delivered before the gathering. Until all
 * copies have these rows (`unsettledUntil`), the reader is *settling*: rows from the hub only trigger a page.
 */
export class Reader implements Reading {
  readonly #options: ReaderOptions
  readonly #arrival = new Condition()
  #state: 'behind' | 'settling' | 'live' = 'behind'
  /** Undefined before the first page, and after too many rows. */
  #gathered: Gathered | undefined
  #seen: Seen = new Map()
  #settlesAt = 0
  #forgetsAt = 0
  #lastSeq: Seq
  /** Sequence of the last row that the hub has delivered, for any reader. */
  #passed: Seq
  #isFirstPage = true
  #tidying: Alarm | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#lastSeq = this.#passed = options.since
  }

  get lastSeq(): Seq {
    return this.#lastSeq
  }

  get isBehind(): boolean {
    return this.#state === 'behind'
  }

  async next(most: number, signal: AbortSignal): Promise<readonly Update[]> {
    if (this.#state === 'settling' && this.#gathered!.size > 0) {
      await this.#options.clock.sleep(LAG_MS, signal) // the last page lacked the row
    }
    await this.#arrival.until(() => this.#hasSomething(), signal)
    if (this.#state !== 'live') return this.#readPage(most, signal)
    const updates = this.#gathered!.take(most)
    this.#lastSeq = this.#gathered!.size > 0 ? updates.at(-1)!.seq : this.#passed
    return updates
  }

  /** Takes a row from the hub. */
  take(update: Update): void {
    const gathered = this.#gathered
    if (!gathered) return
    this.#passed = update.seq
    if (update.isFor(this.#options.viewer)) gathered.add(update)
    if (gathered.size > MOST_GATHERED) {
      this.fallBehind()
      this.#options.onSlow()
    } else if (gathered.size > 0) this.#arrival.changed()
    else if (this.#state === 'live') this.#lastSeq = update.seq
  }

  /** Call this when the hub has reconnected: revisions from pages mean nothing if the database is a new one. */
  reconnected(): void {
    this.#seen.clear()
  }

  /** Reads pages again: the hub's next rows may not follow the rows that were read. */
  fallBehind(): void {
    this.#gathered = undefined
    this.#state = 'behind'
    this.#arrival.changed()
  }

  /** Starts at zero: the reader's sequence is not valid in the current database. */
  startAgain(): void {
    this.#seen = new Map() // a page that is being read is of the former database
    this.#lastSeq = this.#passed = SEQ_ZERO
    this.fallBehind()
  }

  close(): void {
    this.#tidying?.stop()
    this.#options.onClose()
  }

  #hasSomething(): boolean {
    if (this.#state === 'behind' || this.#gathered!.size > 0) return true
    return this.#state === 'settling' && this.#isSettled()
  }

  #isSettled(): boolean {
    return this.#options.clock.ticks() >= this.#settlesAt
  }

  async #readPage(most: number, signal: AbortSignal): Promise<readonly Update[]> {
    const { viewer, alarms, clock } = this.#options
    const gathered = (this.#gathered ??= this.#beginToGather()) // before the page is read
    const seen = this.#seen
    const isSettled = this.#isSettled()
    const page = await this.#page(most, signal)
    signal.throwIfAborted() // otherwise an alarm would outlive the reader
    const updates = page.updates.filter((update) => update.isFor(viewer))
    const wanted = updates.slice(0, most)
    const isEnd = page.isLast && wanted.length === updates.length
    if (seen === this.#seen) this.#lastSeq = wanted.length < updates.length ? wanted.at(-1)!.seq : page.seq
    gathered.skip(wanted)
    if (isEnd && gathered === this.#gathered) this.#state = isSettled ? 'live' : 'settling'
    this.#forgetsAt = clock.ticks() + LATE_MS
    this.#tidying ??= alarms.set(TIDY_MS, () => this.#tidy())
    return wanted
  }

  /** A reader that starts at `now` ignores rows that the hub delivered before. */
  #beginToGather(): Gathered {
    const isNow = seqText(this.#lastSeq) === 'now'
    this.#settlesAt = isNow ? 0 : this.#options.unsettledUntil()
    return new Gathered(this.#seen)
  }

  async #page(most: number, signal: AbortSignal): Promise<Page> {
    const { history, viewer, clock, random, onPage } = this.#options
    const limit = viewer.kind === 'admin' || most === 0 ? Math.min(most, PAGE) : PAGE
    if (this.#isFirstPage && (await history.isBehind(this.#lastSeq, signal))) this.#lastSeq = SEQ_ZERO
    const read = () => history.page(this.#lastSeq, limit, signal)
    const page = await (this.#isFirstPage ? read() : withRetries(read, { clock, random, signal, retryOf }))
    this.#isFirstPage = false
    onPage()
    return page
  }

  #tidy(): void {
    if (this.#state === 'settling') return this.#arrival.changed()
    if (this.#options.clock.ticks() < this.#forgetsAt) return
    this.#seen.clear()
    this.#tidying?.stop()
    this.#tidying = undefined
  }
}

/** Revisions that a reader has from pages, and that the hub may still deliver, by the id of their document. */
type Seen = Map<string, string>

/** Maximum number of revisions in `Seen`: the latest. */
const MOST_SEEN = 1000

/** Rows from the hub that a reader has not taken yet. A later row about a document replaces the earlier one. */
export class Gathered {
  readonly #rows = new Map<string, Update>()
  readonly #seen: Seen

  constructor(seen: Seen = new Map()) {
    this.#seen = seen
  }

  get size(): number {
    return this.#rows.size
  }

  add(update: Update): void {
    const seen = this.#seen.get(update.id)
    if (seen !== undefined && compareRevs(seen, update.rev) >= 0) return
    this.#rows.delete(update.id) // otherwise it keeps the position of the earlier row
    this.#rows.set(update.id, update)
  }

  /** Skips these rows: the reader has them from a page. */
  skip(updates: readonly Update[]): void {
    for (const { id, rev } of updates) {
      const row = this.#rows.get(id)
      if (row && compareRevs(rev, row.rev) >= 0) this.#rows.delete(id)
      this.#seen.delete(id) // otherwise it keeps the position of the earlier revision
      this.#seen.set(id, rev)
    }
    for (const id of this.#seen.keys()) {
      if (this.#seen.size <= MOST_SEEN) break
      this.#seen.delete(id)
    }
  }

  take(most: number): readonly Update[] {
    const updates = [...this.#rows.values()].slice(0, most)
    for (const { id } of updates) this.#rows.delete(id)
    return updates
  }
}
