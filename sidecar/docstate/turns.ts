/**
 * The turns of the documents of one handler. At most `concurrency` run at once. A claim says that its handler begins, so a
 * document is claimed only when it may run, or may run as soon as its claim is answered.
 *
 * Claims travel in groups. But if a process dies as soon as a handler is called, everything that was claimed with that
 * document is in doubt. So where few documents wait, each is claimed and begun by itself; where many wait, a small part
 * of them together, and no more than can begin within a moment.
 */
import { Permit, Semaphore } from '../core/semaphore.ts'

export interface TurnsOptions {
  readonly concurrency: number
  /** Safe handlers have none. */
  readonly hasClaims: boolean
  /** Changes of the database that were not read yet. */
  readonly unread: () => number
  /** A clock that never jumps, milliseconds. */
  readonly ticks: () => number
}

/** Up to so many waiting documents are claimed one at a time. */
const FEW = 100
/** Of more of them, this part is claimed together. */
const PART = 1 / 32
/** More of them make a claim no cheaper. */
const MOST = 500
/** What is claimed together is to begin within so many milliseconds. */
const MOMENT_MS = 20
/** The weight of the last run in the mean time of a run. */
const WEIGHT = 1 / 16

export class Turns {
  readonly #options: TurnsOptions
  /** Documents from their claim to the end of the handler; without claims, those that run. */
  readonly #claimed: Semaphore
  readonly #beginning: Semaphore
  readonly #running: Semaphore
  /** The most that have waited at once since none did. */
  #most = 0
  /** Mean time of a run, milliseconds. */
  #mean = Infinity

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#claimed = new Semaphore(() => this.#mostClaimed())
    this.#beginning = new Semaphore(() => this.#groupSize())
    this.#running = new Semaphore(() => options.concurrency)
  }

  /** Calls `work` with a turn as soon as one is free. A turn has to be left, and can be left twice. */
  take(work: (turn: Turn) => void): void {
    const ran = (ms: number) => (this.#mean = this.#mean === Infinity ? ms : this.#mean + (ms - this.#mean) * WEIGHT)
    const turn = new Turn({
      claim: new Permit(this.#claimed),
      begin: new Permit(this.#beginning),
      run: new Permit(this.#running),
      ticks: this.#options.ticks,
      ran,
    })
    turn.take(() => work(turn))
  }

  #groupSize(): number {
    const waiting = this.#claimed.waiting + this.#beginning.waiting
    this.#most = waiting === 0 ? 0 : Math.max(this.#most, waiting)
    if (this.#most <= FEW) return 1
    return Math.min(MOST, Math.ceil(Math.max(this.#most, this.#options.unread()) * PART))
  }

  /** One group on its way, and one that runs. */
  #mostClaimed(): number {
    const { concurrency, hasClaims } = this.#options
    if (!hasClaims) return concurrency
    return Math.max(concurrency, Math.min(2 * this.#groupSize(), Math.floor((concurrency * MOMENT_MS) / this.#mean)))
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

  /** Resolves when it may be claimed. */
  async mayClaim(): Promise<void> {
    await this.#options.begin.enter()
  }

  /** Resolves when its handler may begin. Takes the turn again if it was left. */
  async mayBegin(): Promise<void> {
    const { claim, run } = this.#options
    await claim.enter()
    await run.enter()
  }

  /** Its handler begins. */
  begins(): void {
    this.#startedAt = this.#options.ticks()
  }

  /** Its handler has begun, or its claim takes long: the next document may be claimed. */
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
