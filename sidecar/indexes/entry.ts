import type { Job } from './decide.ts'
import type { Index } from './indexes-of.ts'
import type { Progress } from './kinds/kind.ts'

/** What keeps an index from being built. */
export interface Failure {
  readonly code: string
  /** In words. */
  readonly reason: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** In a row. */
  readonly count: number
}

/** What is known of one index. All times are given: milliseconds since the epoch, but for those in `job`. */
export class Entry {
  readonly index: Index
  job: Job | undefined
  failure: Failure | undefined
  /** In changes; undefined until the index was asked. */
  lag: number | undefined
  checkedAt: number | undefined
  /** The server lacks its language: nothing to do until the design document is another. */
  isForeign = false
  /** Something has changed while it was being built. */
  again = false
  /** Ends its build. */
  readonly #ending = new AbortController()
  /** Since when it may be behind. */
  #behindSince: number | undefined
  /** Since when it is behind what is being built. */
  #sinceStart: number | undefined

  constructor(index: Index, now: number) {
    this.index = index
    this.#behindSince = now
  }

  get ended(): AbortSignal {
    return this.#ending.signal
  }

  get isFresh(): boolean {
    return this.#behindSince === undefined
  }

  /** Something has changed in the database. */
  touch(now: number): void {
    if (this.job?.isRunning) this.#sinceStart ??= now
    else this.#behindSince ??= now
  }

  /** Milliseconds. */
  behindFor(now: number): number {
    return this.#behindSince === undefined ? 0 : now - this.#behindSince
  }

  read({ lag }: Progress, now: number): void {
    this.lag = lag
    this.checkedAt = now
  }

  /** @param since when something changed first after the database was found to be at `seq`, if it has */
  begin(seq: number, ticks: number, since: number | undefined): void {
    if (this.job && this.lag !== undefined) this.lag += Math.max(0, seq - this.job.seq)
    this.job = { isRunning: true, seq, at: ticks, notBefore: 0 }
    this.#sinceStart = since
  }

  /** It is where the database was when it began. Returns for how long it was behind that, milliseconds. */
  reach(now: number, ticks: number): number {
    const wasBehindMs = this.behindFor(now)
    this.job = { ...this.job!, isRunning: false, at: ticks }
    this.failure = undefined
    this.#behindSince = this.#sinceStart
    this.#sinceStart = undefined
    return wasBehindMs
  }

  /** It was there before: what was thought to be a change was none for it. `since` is as in `begin`. */
  confirm(now: number, since: number | undefined): void {
    this.#behindSince = since
    this.lag = 0
    this.checkedAt = now
  }

  /** @param notBefore of the next try, by the clock's ticks */
  fail(failure: Failure, ticks: number, notBefore: number): void {
    this.job = { ...this.job!, isRunning: false, at: ticks, notBefore }
    this.failure = failure
    this.#sinceStart = undefined
  }

  /** The build was given up; nothing failed. */
  giveUp(): void {
    this.job = undefined
    this.#sinceStart = undefined
  }

  /** It is not kept any more. */
  end(): void {
    this.#ending.abort(new Error(`${this.index.ddoc} of ${this.index.database} is no longer kept`))
  }
}
