/**
 * The turns of the documents of one handler. At most `concurrency` run at once. A claim says that its handler begins, so a
 * document is claimed only when it may run, or may run as soon as its claim is answered.
 *
 * Claims travel in groups. But if a process dies as soon as a handler is called, everything that was claimed with that
 * document is in doubt. So where few documents wait, each is claimed and begun by itself; where many wait, a small part
 * of them together, and no more than can begin within a moment.
 *
 * All databases of a process share the turns of a handler, and each database that waits has the next one in turn.
 */
import { Permit, Semaphore } from '../core/semaphore.ts'

export interface SharedTurnsOptions {
  /** How many may run now, in this process. */
  readonly concurrency: () => number
  /** Safe handlers have none. */
  readonly hasClaims: boolean
  /** Called when no document waits any more. */
  readonly onNoneWaiting?: () => void
}

export interface TurnsOptions {
  /** Of all databases of the process. */
  readonly shared: SharedTurns
  /** Changes of this database that were not read yet. */
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

/** What all databases have in common: how many are claimed, and run. */
export class SharedTurns {
  readonly #options: SharedTurnsOptions
  /** Documents from their claim to the end of the handler; without claims, those that run. */
  readonly claimed: Semaphore
  readonly running: Semaphore
  #waiting = 0
  /** Documents that are claimed together. */
  #group = 1
  /** Mean time of a run, milliseconds. */
  #mean = Infinity

  constructor(options: SharedTurnsOptions) {
    this.#options = options
    this.claimed = new Semaphore(() => this.#mostClaimed())
    this.running = new Semaphore(options.concurrency)
  }

  /** Documents that wait for a turn. */
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

  /** More may run than before. */
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

  /** One group on its way, and one that runs. */
  #mostClaimed(): number {
    const concurrency = this.#options.concurrency()
    if (!this.#options.hasClaims) return concurrency
    return Math.max(concurrency, Math.min(2 * this.#group, Math.floor((concurrency * MOMENT_MS) / this.#mean)))
  }
}

/** Of one database. */
export class Turns {
  readonly #options: TurnsOptions
  readonly #beginning: Semaphore
  /** What is called with the next turns of this database. */
  readonly #waiting: ((turn: Turn) => void)[] = []
  #isAsking = false
  /** The most that have waited at once since none did. */
  #most = 0

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#beginning = new Semaphore(() => this.#groupSize())
  }

  /** Calls `work` with a turn as soon as one is free. A turn has to be left, and can be left twice. */
  take(work: (turn: Turn) => void): void {
    this.#waiting.push(work)
    this.#options.shared.comes()
    this.#groupSize()
    if (!this.#isAsking) this.#ask()
  }

  /** One request of each database waits at a time: so one in which much waits holds up no other. */
  #ask(): void {
    const { shared, ticks } = this.#options
    this.#isAsking = true
    const turn = new Turn({
      claim: new Permit(shared.claimed),
      begin: new Permit(this.#beginning),
      run: new Permit(shared.running),
      ticks,
      ran: (ms) => shared.ran(ms),
    })
    turn.take(() => {
      this.#isAsking = false
      const work = this.#waiting.shift()!
      shared.goes()
      work(turn)
      if (this.#waiting.length > 0 && !this.#isAsking) this.#ask()
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
