/**
 * The turns of the documents of one handler. At most `concurrency` run at once. A claim says that its handler begins, so a
 * document is claimed only when it may run.
 *
 * Claims travel in groups. But if a process dies as soon as a handler is called, everything that was claimed with that
 * document is in doubt. So where few documents wait, each is claimed and begun by itself; where many wait, a small part
 * of them together.
 */
import { Permit, Semaphore } from '../core/semaphore.ts'

/** Up to so many waiting documents are claimed one at a time. */
const FEW = 100
/** Of more of them, this part is claimed together. */
const PART = 1 / 32

export class Turns {
  readonly #running: Semaphore
  readonly #beginning = new Semaphore(() => this.#groupSize())
  /** The most that have waited at once since none did. */
  #most = 0

  constructor(concurrency: number) {
    this.#running = new Semaphore(() => concurrency)
  }

  /** Calls `work` with a turn as soon as one is free. A turn has to be left, and can be left twice. */
  take(work: (turn: Turn) => void): void {
    const turn = new Turn(new Permit(this.#running), new Permit(this.#beginning))
    turn.take(() => work(turn))
  }

  #groupSize(): number {
    const waiting = this.#running.waiting + this.#beginning.waiting
    this.#most = waiting === 0 ? 0 : Math.max(this.#most, waiting)
    return this.#most <= FEW ? 1 : Math.ceil(this.#most * PART)
  }
}

/** The turn of one document. */
export class Turn {
  readonly #run: Permit
  readonly #begin: Permit

  constructor(run: Permit, begin: Permit) {
    this.#run = run
    this.#begin = begin
  }

  take(work: () => void): void {
    this.#run.take(work)
  }

  /** Resolves when its handler may begin. Takes the turn again if it was left. */
  async mayBegin(): Promise<void> {
    await this.#run.enter()
    await this.#begin.enter()
  }

  /** Its handler has begun, or its claim takes long: the next document may begin. */
  letOthersBegin(): void {
    this.#begin.leave()
  }

  leave(): void {
    this.#begin.leave()
    this.#run.leave()
  }
}
