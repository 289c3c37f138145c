import type { Logger } from 'pino'
import { Semaphore } from '../core/semaphore.ts'
import { untilAny } from '../core/until-any.ts'
import { CouchError, isServerAway, type CouchErrorCode } from '../couch/couch-errors.ts'
import { CircuitBreaker } from '../core/circuit-breaker.ts'
import type { Counters } from '../docstate/counters.ts'
import type { Engine } from '../docstate/engine.ts'
import { Bell } from '../feed/bell.ts'
import { forget, type TrackedDatabase } from './tracked-database.ts'
import type { WorkedOut } from './jobs.ts'
import { FairQueue } from './fair-queue.ts'
import { visit, type VisitOptions } from './visit.ts'

type OfOne = 'name' | 'kind' | 'table' | 'owner' | 'semaphore' | 'isCrowded' | 'onEngine' | 'onRead' | 'counts'

export interface VisitsOptions extends Omit<VisitOptions, OfOne> {
  readonly trackedDatabases: ReadonlyMap<string, TrackedDatabase>
  readonly jobOf: (database: string) => WorkedOut
  readonly countsOf: (database: string) => Counters
  /** Maximum databases read at the same time. */
  readonly reads: number
  /** Maximum open visits. Default 1000. */
  readonly mostOpen?: number
  /** A visit whose documents only wait for this long makes room for others. Milliseconds, default 10,000. */
  readonly heldMs?: number
  /** Engines of the databases that are visited now, by name. */
  readonly engines: Map<string, Engine>
  /** Called when a visit has ended; `again`: another visit is needed. */
  readonly onEnd: (tracked: TrackedDatabase, again: boolean) => void
  readonly log: Logger
}

/** An open visit takes about 40 KB of memory. Visits reach this limit only if they wait for handlers. */
const MOST_OPEN = 1000
/** From this part of `MOST_OPEN` on, visits linger no longer than necessary while others wait. */
const CROWDED = 0.5
/** At the limit, a visit ends if its documents have waited this long for their turn, the latest visit first. */
const HELD_MS = 10_000
/** Maximum delay of the next visit after one that ended to make room; the first delay is `HELD_MS`. */
const MOST_HELD_MS = 300_000
/** Minimum interval of checks for room: each check reads all open visits. */
const LOOK_MS = 1000
/** Minimum delay of the next visit after a failed one; the maximum is twice as long. */
const AGAIN_MS = 5000

/** Queues databases for visits, and runs the visits with limited concurrency. */
export class Visits {
  readonly counts = { visits: 0, reads: 0 }
  readonly #options: VisitsOptions
  readonly #queue = new FairQueue()
  readonly #semaphore: Semaphore
  readonly #breaker: CircuitBreaker
  readonly #underWay = new Set<Promise<void>>()
  /** Number of visits that have not read anything yet. */
  #beginning = 0
  /** When visits were last checked for room, in ticks. */
  #lookedAt = -Infinity
  #waiting = new AbortController()
  #signal = AbortSignal.abort()
  #mistake: { readonly thrown: unknown } | undefined

  constructor(options: VisitsOptions) {
    this.#options = options
    this.#semaphore = new Semaphore(() => options.reads)
    this.#breaker = new CircuitBreaker(options.clock)
  }

  get open(): number {
    return this.#underWay.size
  }
  get waiting(): number {
    return this.#queue.size
  }

  /** Queues a database that an event has named. */
  queueNamed(tracked: TrackedDatabase): void {
    tracked.hasEvent = true
    this.#want(tracked, (name) => this.#queue.addNamed(name))
  }

  /** Queues a database that may have changed. False if the change was already known. */
  find(tracked: TrackedDatabase): boolean {
    if (this.#queue.hasNewsOf(tracked.name)) return false
    this.#want(tracked, (name) => this.#queue.find(name))
    return true
  }

  /** Cancels the visits of a database; an open visit ends. */
  remove({ name, visit }: TrackedDatabase): void {
    this.#queue.remove(name)
    visit?.leave(new Error(`${name} is not visited any more`))
  }

  /** Runs until the signal aborts and all open visits have ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, reads, mostOpen = MOST_OPEN } = this.#options
    this.#signal = signal
    while (!signal.aborted && !this.#mistake) {
      this.#waiting = new AbortController()
      this.#queue.ripen(clock.ticks())
      while (this.open < mostOpen && this.#beginning < reads * 2 && this.#breaker.restsUntil === undefined) {
        const name = this.#queue.take()
        if (name === undefined) break
        this.#begin(name)
      }
      const at = Math.min(this.#queue.nextAt() ?? Infinity, this.#breaker.restsUntil ?? Infinity)
      const isFull = this.open >= mostOpen && this.waiting > 0
      if (isFull) this.#makeRoom()
      const pauseMs = Math.max(1, Math.min(isFull ? LOOK_MS : 60_000, at - clock.ticks()))
      const sleep = (until: AbortSignal) => clock.sleep(pauseMs, until)
      await untilAny([signal, this.#waiting.signal], sleep).catch(() => undefined)
    }
    await Promise.all(this.#underWay)
    if (this.#mistake) throw this.#mistake.thrown
  }

  /** Makes room for waiting databases: ends the latest visits in which all documents wait for their turn. */
  #makeRoom(): void {
    const { engines, trackedDatabases, clock, heldMs = HELD_MS, reads } = this.#options
    if (clock.ticks() - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = clock.ticks()
    let wanted = Math.min(this.waiting, reads)
    for (const [name, engine] of [...engines].reverse()) {
      const visit = trackedDatabases.get(name)?.visit
      if (!visit) continue
      visit.heldSince = engine.heldBack() ? (visit.heldSince ?? clock.ticks()) : undefined
      visit.makesRoom = visit.heldSince !== undefined && clock.ticks() - visit.heldSince >= heldMs
      if (visit.makesRoom && --wanted === 0) return
    }
  }

  #want({ name, visit }: TrackedDatabase, wait: (name: string) => void): void {
    if (visit) return visit.bell.ring()
    wait(name)
    this.#waiting.abort()
  }

  #begin(name: string): void {
    const tracked = this.#options.trackedDatabases.get(name)
    if (!tracked || tracked.visit) return
    this.#queue.remove(name) // from each queue: one visit serves all reasons
    const leaving = new AbortController()
    const bell = new Bell()
    tracked.visit = { bell, heldSince: undefined, makesRoom: false, leave: (reason) => leaving.abort(reason) }
    const going = untilAny([this.#signal, leaving.signal], (until) => this.#go(tracked, bell, until))
      .catch((thrown: unknown) => void (this.#mistake ??= { thrown }))
      .finally(() => {
        this.#underWay.delete(going)
        this.#waiting.abort()
      })
    this.#underWay.add(going)
  }

  async #go(tracked: TrackedDatabase, bell: Bell, signal: AbortSignal): Promise<void> {
    const { engines, jobOf, countsOf, mostOpen = MOST_OPEN, log, onEnd } = this.#options
    const { name } = tracked
    const child = log.child({ db: name })
    const begun = this.#beginOne()
    let isRead = false
    const onRead = () => {
      this.counts.reads += 1
      begun()
    }
    const ofOne = {
      ...jobOf(name),
      name,
      counts: countsOf(name),
      log: child,
      semaphore: this.#semaphore,
      isCrowded: () => this.waiting > 0 && this.open >= mostOpen * CROWDED,
      onRead,
      onEngine: (engine: Engine) => void engines.set(name, engine),
    }
    try {
      const visited = await visit(tracked, { ...this.#options, ...ofOne }, bell, signal)
      this.counts.visits += 1
      if (visited.kind === 'broken') return this.#failed(name, visited.code)
      isRead = true
      this.#breaker.succeeded()
      if (visited.kind === 'missing') return forget(tracked)
      const dueMs = visited.nextAt === undefined ? Infinity : visited.nextAt - this.#options.clock.now()
      const inMs = Math.min(dueMs, visited.kind === 'held-back' ? this.#holdBack(tracked) : Infinity)
      if (visited.kind === 'rest') tracked.known.heldMs = undefined
      if (inMs !== Infinity) this.#comeAgain(name, inMs)
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      child.debug({ code: thrown.code, reason: thrown.message }, 'the database could not be visited')
      this.#failed(name, thrown.code)
    } finally {
      begun()
      engines.delete(name)
      tracked.visit = undefined
      const isWantedAgain = (isRead && bell.isRinging) || signal.aborted // a database that cannot be read has a delay
      if (!this.#signal.aborted) onEnd(tracked, isWantedAgain)
    }
  }

  /** Counts a beginning visit until the returned function is called. */
  #beginOne(): () => void {
    this.#beginning += 1
    let isBeginning = true
    return () => {
      if (!isBeginning) return
      isBeginning = false
      this.#beginning -= 1
      this.#waiting.abort()
    }
  }

  /** Delay of the next visit, milliseconds; it doubles each time. */
  #holdBack({ known }: TrackedDatabase): number {
    const { heldMs = HELD_MS, random } = this.#options
    known.heldMs = Math.min(MOST_HELD_MS, 2 * (known.heldMs ?? heldMs / 2))
    return known.heldMs * (1 + random() / 4)
  }

  #failed(name: string, code: CouchErrorCode): void {
    if (isServerAway(code)) this.#breaker.failed()
    this.#comeAgain(name, AGAIN_MS * (1 + this.#options.random()))
  }

  #comeAgain(name: string, inMs: number): void {
    this.#queue.addAt(name, this.#options.clock.ticks() + inMs)
  }
}
