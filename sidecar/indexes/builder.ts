/**
 * Databases wait in a queue, each once. The builder takes one, reads its indexes and its position, and decides for each
 * index whether to build it now. A build ends when the index reaches that position; later changes cause another build.
 * Nothing is blocked for a fixed time: a refusal is decided again when the answer can change.
 */
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { CouchError, isServerAway } from '../couch/couch-errors.ts'
import type { Book, Page } from './book.ts'
import type { Builds, Ended } from './builds.ts'
import type { DesignDocsReader } from './design-docs.ts'
import type { Entry } from './entry.ts'
import type { Kinds } from './kinds/kinds.ts'
import { createLook, type Channels, type Look } from './look.ts'
import type { Pace } from './pace.ts'
import { Queue } from '../core/queue.ts'
import { untilAny } from '../core/until-any.ts'
import type { KenSettings } from './index-settings.ts'
import { CircuitBreaker } from '../core/circuit-breaker.ts'

export interface BuilderOptions {
  readonly book: Book
  readonly builds: Builds
  readonly designDocs: DesignDocsReader
  readonly pace: Pace
  /** Kinds that the server can build now. */
  readonly kinds: () => Kinds
  /** Whether this worker builds the indexes of the database. */
  readonly isBuiltHere: (database: string) => boolean
  /** How long a changed database waits for its check, milliseconds: changes in this time cause one check. */
  readonly gatherMs: () => number
  /** Number of workers that divide the channels. */
  readonly workers: () => number
  readonly settings: () => KenSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** As in ken: the delay after a failure, and the delay if no channel was free. */
const [AFTER_FAILURE_MS, AFTER_NO_MS] = [5000, 60_000]

export class Builder {
  readonly queue = new Queue()
  readonly #options: BuilderOptions
  readonly #look: Look
  /** Databases refused because no channel was free: after each build, one of them is checked again. */
  readonly #refused = new Set<string>()
  readonly #underWay = new Set<Promise<void>>()
  /** Databases under check; true if the database must be checked again afterwards. */
  readonly #looking = new Map<string, boolean>()
  readonly #breaker: CircuitBreaker
  #prunedAt: number
  #signal = AbortSignal.abort()
  #waiting = new AbortController()
  #mistake: { readonly thrown: unknown } | undefined

  constructor(options: BuilderOptions) {
    this.#options = options
    this.#breaker = new CircuitBreaker(options.clock)
    this.#prunedAt = options.clock.ticks()
    const channels = () => this.#channels()
    const active = () => options.builds.active
    this.#look = createLook({ ...options, channels, active, start: (entry, page) => this.#build(entry, page) })
  }

  /** Queues a database that has changed. */
  add(database: string): void {
    const { book, clock, gatherMs, isBuiltHere } = this.#options
    if (!isBuiltHere(database)) return this.remove(database)
    book.touch(database, clock.now())
    if (gatherMs() > 0) this.queue.addAt(database, clock.ticks() + gatherMs())
    else this.queue.add(database)
    this.#wake()
  }

  /** Forgets a database that is deleted or belongs to another worker, and ends its builds. */
  remove(database: string): void {
    this.queue.remove(database)
    this.#forget(database)
  }

  /** Queues all refused databases again. */
  recheck(): void {
    for (const database of this.#refused) this.queue.add(database)
    this.#refused.clear()
    this.#wake()
  }

  /** Works until the signal aborts, then waits for running work. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    this.#signal = signal
    while (!signal.aborted && !this.#mistake) {
      this.#waiting = new AbortController()
      this.#prune()
      this.queue.ripen(clock.ticks())
      while (this.#mayLook()) this.#takeNext()
      const sleep = (until: AbortSignal) => clock.sleep(this.#untilNextMs(), until)
      await untilAny([signal, this.#waiting.signal], sleep).catch(() => undefined)
    }
    await Promise.all(this.#underWay)
    if (this.#mistake) throw this.#mistake.thrown
  }

  #forget(database: string): void {
    this.#refused.delete(database)
    this.#options.designDocs.forget(database)
    this.#options.book.close(database)
  }

  #prune(): void {
    const { clock, settings, book } = this.#options
    const { prune_interval } = settings()
    if (clock.ticks() - this.#prunedAt < prune_interval) return
    this.#prunedAt = clock.ticks()
    book.prune(this.#prunedAt - prune_interval)
  }

  #mayLook(): boolean {
    const { settings, builds } = this.#options
    if (this.queue.size === 0 || this.#breaker.restsUntil !== undefined) return false
    return this.#looking.size < settings().limit && builds.active < this.#channels().total
  }

  #takeNext(): void {
    const database = this.queue.take()!
    if (!this.#options.isBuiltHere(database)) this.remove(database)
    else if (this.#looking.has(database)) this.#looking.set(database, true)
    else this.#go(this.#lookAt(database))
  }

  /** This worker's channels: the settings are for the server, so all workers divide them. */
  #channels(): Channels {
    const { settings, workers, pace, kinds } = this.#options
    const { batch_channels, incremental_channels } = settings()
    if (Object.keys(kinds()).length === 0) return { batch: 0, total: 0 } // the server's kinds are not known yet
    const ofThis = (channels: number) => pace.of(Math.ceil(channels / workers()))
    const batch = ofThis(batch_channels)
    return { batch, total: batch + ofThis(incremental_channels) }
  }

  #untilNextMs(): number {
    const { clock, pace } = this.#options
    const times = [this.queue.nextAt(), pace.pausedUntil, this.#breaker.restsUntil]
    const next = Math.min(...times.map((time) => time ?? Infinity))
    return Math.max(1, Math.min(AFTER_NO_MS, next - clock.ticks()))
  }

  #wake(): void {
    this.#waiting.abort()
  }

  #go(work: Promise<void>): void {
    const going = work
      .catch((thrown: unknown) => void (this.#mistake ??= { thrown }))
      .finally(() => {
        this.#underWay.delete(going)
        this.#wake()
      })
    this.#underWay.add(going)
  }

  async #lookAt(database: string): Promise<void> {
    const { clock, log } = this.#options
    this.#looking.set(database, false)
    this.#refused.delete(database)
    try {
      const looked = await this.#look(database, this.#signal)
      this.#breaker.succeeded()
      if (!looked) return this.#forget(database) // stays queued if added since: it may have been recreated
      if (looked.isRefused) this.#refused.add(database)
      if (looked.isRefused) this.queue.addAt(database, clock.ticks() + AFTER_NO_MS)
      if (looked.waitMs !== undefined) this.queue.addAt(database, clock.ticks() + looked.waitMs)
    } catch (thrown) {
      if (this.#signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      log.debug({ database, code: thrown.code, reason: thrown.message }, 'cannot check the indexes of this database')
      if (isServerAway(thrown.code)) this.#breaker.failed()
      this.queue.addAt(database, clock.ticks() + (thrown.retry === 'slowly' ? AFTER_NO_MS : AFTER_FAILURE_MS))
    } finally {
      if (this.#looking.get(database)) this.queue.add(database)
      this.#looking.delete(database)
    }
  }

  #build(entry: Entry, page: Page): void {
    const running = this.#options.builds.run(entry, page, this.#signal)
    this.#go(running.then((ended) => this.#ended(entry, ended)))
  }

  #ended(entry: Entry, ended: Ended): void {
    const { database } = entry.index
    if (ended.kind === 'failed') this.queue.addAt(database, this.#options.clock.ticks() + ended.retryInMs)
    else if (entry.again) this.queue.add(database)
    entry.again = false
    const [refused] = this.#refused
    if (refused === undefined) return
    this.#refused.delete(refused)
    this.queue.add(refused)
  }
}
