/**
 * The turns of the documents of one handler. At most `concurrency` documents run at once. A claim says that its handler
 * begins. So a document is claimed only when it may run, or may run as soon as its claim is answered.
 *
 * Claims travel in groups. If a process dies right after it calls a handler, every document claimed in the same group
 * is in doubt. So a few waiting documents are claimed and begun one by one. Many waiting documents are claimed in small
 * parts, no larger than can begin within `MOMENT_MS`.
 *
 * All databases of a process share the turns of a handler. Waiting databases get the next turn in rotation.
 */
import { Permit, Semaphore } from '../core/semaphore.ts'

export interface SharedTurnsOptions {
  /** Maximum documents that may run now in this process. */
  readonly concurrency: () => number
  /** Whether the handler needs claims; false for safe handlers. */
  readonly hasClaims: boolean
  /** Called when no document waits any more. */
  readonly onNoneWaiting?: () => void
}

export interface TurnsOptions {
  /** Shared by all databases of the process. */
  readonly shared: SharedTurns
  /** Number of changes of this database that were not read yet. */
  readonly unread: () => number
  /** A monotonic clock, milliseconds. */
  readonly ticks: () => number
}

/** Up to this many waiting documents are claimed one at a time. */
const FEW = 100
/** Part of the waiting documents that is claimed together, if more than `FEW` wait. */
const PART = 1 / 32
/** Maximum group size: larger groups make a claim no cheaper. */
const MOST = 500
/** Documents that are claimed together should begin within this time. */
const MOMENT_MS = 20
/** Weight of the last run in the mean duration of a run. */
const WEIGHT = 1 / 16

/** The state of a handler's turns that all databases share: claimed and running documents. */
export class SharedTurns {
  readonly #options: SharedTurnsOptions
  /** Permits from the claim to the end of the handler; without claims, for running documents. */
  readonly claimed: Semaphore
  readonly running: Semaphore
  #waiting = 0
  /** Number of documents that are claimed together. */
  #group = 1
  /** Mean duration of a run, milliseconds. */
  #mean = Infinity

  constructor(options: SharedTurnsOptions) {
    this.#options = options
    this.claimed = new Semaphore(() => this.#mostClaimed())
    this.running = new Semaphore(options.concurrency)
  }

  /** Number of documents that wait for a turn. */
  get waiting(): number {
    return this.#waiting
  }

  comes(): void {
    this.#waiting += 1
  }

  goes(): void {
    this.#waiting -= 1
    if (this.#waiting === 0) this.#options.onNoneWaiting?.()
  }

  /** Call when more documents may run than before. */
  changed(): void {
    this.claimed.changed()
    this.running.changed()
  }

  ran(ms: number): void {
    this.#mean = this.#mean === Infinity ? ms : this.#mean + (ms - this.#mean) * WEIGHT
  }

  groupIs(size: number): void {
    this.#group = size
  }

  /** Room for one group that is being claimed and one that runs. */
  #mostClaimed(): number {
    const concurrency = this.#options.concurrency()
    if (!this.#options.hasClaims) return concurrency
    return Math.max(concurrency, Math.min(2 * this.#group, Math.floor((concurrency * MOMENT_MS) / this.#mean)))
  }
}

/** The turns of one database. */
export class Turns {
  readonly #options: TurnsOptions
  readonly #beginning: Semaphore
  /** Callbacks for the next turns of this database. */
  readonly #waiting: ((turn: Turn) => void)[] = []
  #isAsking = false
  #isClosed = false
  /** Maximum number of documents that waited at once, since none waited. */
  #most = 0

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#beginning = new Semaphore(() => this.#groupSize())
  }

  /** Calls `work` with a turn as soon as one is free, or after `close`. A turn must be left, and may be left twice. */
  take(work: (turn: Turn) => void): void {
    if (this.#isClosed) return work(this.#create())
    this.#waiting.push(work)
    this.#options.shared.comes()
    this.#groupSize()
    if (!this.#isAsking) this.#request()
  }

  /** Ends the waiting: present and later documents get a turn without permits at once. */
  close(): void {
    this.#isClosed = true
    for (const work of this.#waiting.splice(0)) {
      this.#options.shared.goes()
      work(this.#create())
    }
  }

  /** Each database has one request waiting at a time, so a busy database does not delay the others. */
  #request(): void {
    this.#isAsking = true
    const turn = this.#create()
    turn.take(() => {
      this.#isAsking = false
      const work = this.#waiting.shift()
      if (!work) return turn.leave() // closed meanwhile
      this.#options.shared.goes()
      work(turn)
      if (this.#waiting.length > 0 && !this.#isAsking) this.#request()
    })
  }

  #create(): Turn {
    const { shared, ticks } = this.#options
    return new Turn({
      claim: new Permit(shared.claimed),
      begin: new Permit(this.#beginning),
      run: new Permit(shared.running),
      ticks,
      ran: (ms) => shared.ran(ms),
    })
  }

  #groupSize(): number {
    const { shared, unread } = this.#options
    const waiting = shared.waiting + this.#beginning.waiting
    this.#most = waiting === 0 ? 0 : Math.max(this.#most, waiting)
    const size = this.#most <= FEW ? 1 : Math.min(MOST, Math.ceil(Math.max(this.#most, unread()) * PART))
    shared.groupIs(size)
    return size
  }
}
interface TurnOptions {
  readonly claim: Permit
  readonly begin: Permit
  readonly run: Permit
  readonly ticks: () => number
  readonly ran: (ms: number) => void
}

/** The turn of one document. */
export class Turn {
  readonly #options: TurnOptions
  #startedAt: number | undefined

  constructor(options: TurnOptions) {
    this.#options = options
  }

  take(work: () => void): void {
    this.#options.claim.take(work)
  }

  /** Resolves when the document may be claimed. */
  async mayClaim(): Promise<void> {
    await this.#options.begin.enter()
  }

  /** Resolves when the handler may begin. Takes the turn again if it was left. */
  async mayBegin(): Promise<void> {
    const { claim, run } = this.#options
    await claim.enter()
    await run.enter()
  }

  /** Call when the handler begins. */
  begins(): void {
    this.#startedAt = this.#options.ticks()
  }

  /** Call when the handler has begun, or its claim takes long: the next document may be claimed. */
  letOthersBegin(): void {
    this.#options.begin.leave()
  }

  leave(): void {
    const { claim, begin, run, ticks, ran } = this.#options
    if (this.#startedAt !== undefined) ran(ticks() - this.#startedAt)
    this.#startedAt = undefined
    begin.leave()
    run.leave()
    claim.leave()
  }
}
