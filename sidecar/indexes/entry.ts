import type { Job } from './decide.ts'
import type { Index } from './indexes-of.ts'
import type { Progress } from './kinds/kind.ts'

/** Why the last build of an index failed. */
export interface Failure {
  readonly code: string
  /** The reason as text. */
  readonly reason: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Consecutive failures. */
  readonly count: number
}

/** State of one index. Callers pass all times, in milliseconds since the epoch, but in ticks for `job`. */
export class Entry {
  readonly index: Index
  job: Job | undefined
  failure: Failure | undefined
  /** In changes; undefined before the first read of the index. */
  lag: number | undefined
  checkedAt: number | undefined
  /** The server lacks the index's language: no build until the design document changes. */
  isForeign = false
  /** The database has changed during the build. */
  again = false
  /** Ends the build. */
  readonly #ending = new AbortController()
  /** Time since which the index may be stale; undefined if it is up to date. */
  #behindSince: number | undefined
  /** Time of the first change that the running build does not cover. */
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

  /** Records a change in the database. */
  touch(now: number): void {
    if (this.job?.isRunning) this.#sinceStart ??= now
    else this.#behindSince ??= now
  }

  /** How long the index may be stale, milliseconds. */
  behindFor(now: number): number {
    return this.#behindSince === undefined ? 0 : now - this.#behindSince
  }

  read({ lag }: Progress, now: number): void {
    this.lag = lag
    this.checkedAt = now
  }

  /** @param since time of the first change after the database was at `seq`, if any */
  begin(seq: number, ticks: number, since: number | undefined): void {
    if (this.job && this.lag !== undefined) this.lag += Math.max(0, seq - this.job.seq)
    this.job = { isRunning: true, seq, at: ticks, notBefore: 0 }
    this.#sinceStart = since
  }

  /** Records that the build has reached its goal. Returns how long the index was stale, milliseconds. */
  reach(now: number, ticks: number): number {
    const wasBehindMs = this.behindFor(now)
    this.job = { ...this.job!, isRunning: false, at: ticks }
    this.failure = undefined
    this.#behindSince = this.#sinceStart
    this.#sinceStart = undefined
    return wasBehindMs
  }

  /** Records that the index was already up to date: the change did not concern it. `since` is as in `begin`. */
  confirm(now: number, since: number | undefined): void {
    this.#behindSince = since
    this.lag = 0
    this.checkedAt = now
  }

  /** @param notBefore time of the next try, in ticks */
  fail(failure: Failure, ticks: number, notBefore: number): void {
    this.job = { ...this.job!, isRunning: false, at: ticks, notBefore }
    this.failure = failure
    this.#sinceStart = undefined
  }

  /** Records that the build was cancelled without a failure. */
  giveUp(): void {
    this.job = undefined
    this.#sinceStart = undefined
  }

  /** Ends the build: this worker no longer builds the index. */
  end(): void {
    this.#ending.abort(new Error(`${this.index.ddoc} of ${this.index.database} is no longer kept`))
  }
}
