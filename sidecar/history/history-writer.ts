import type { Logger } from 'pino'
import { fullJitter, type Random } from '../core/backoff.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import { Condition } from '../core/condition.ts'
import { withTimeout } from '../core/timeout.ts'
import { untilAny } from '../core/until-any.ts'
import type { Couch } from '../couch/client.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { writtenFrom } from '../couch/written.ts'
import type { EventMap } from '../events/map.ts'
import { databaseOf, makeHistoryDatabase } from './history-databases.ts'
import { historyDoc } from './history-doc.ts'

export interface HistoryWriterOptions {
  readonly couch: Couch
  /** Prefix of the database names. */
  readonly name: string
  readonly worker: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** How long entries are gathered before a write. */
const GATHER_MS = 1000
/** Maximum entries per request. */
const MOST_TOGETHER = 1000
/** Maximum waiting entries while CouchDB accepts none; beyond it, the oldest are dropped. */
const MOST_WAITING = 20_000
const LAST_WORDS_MS = 2000
const BACKOFF = { baseMs: 500, capMs: 15_000 }

/** Writes ended entries in bulk: at most one request a second while few entries end. */
export class HistoryWriter {
  readonly #options: HistoryWriterOptions
  readonly #added = new Condition()
  #waiting: string[] = []
  #leftOut = 0

  constructor(options: HistoryWriterOptions) {
    this.#options = options
  }

  add(ended: Readonly<EventMap['entry:ended']>): void {
    const { clock, worker } = this.#options
    this.#waiting.push(JSON.stringify(historyDoc(ended, worker, isoTime(clock.now()))))
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting = this.#waiting.slice(MOST_WAITING / 10)
      this.#leftOut += MOST_WAITING / 10
    }
    if (this.#waiting.length === 1 || this.#waiting.length === MOST_TOGETHER) this.#added.changed()
  }

  /** Runs until the signal aborts, then writes the waiting entries for at most two seconds. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    let failures = 0
    while (!signal.aborted) {
      await this.#added.until(() => this.#waiting.length > 0, signal).catch(() => undefined)
      await this.#gather(signal)
      try {
        await this.#write(signal)
        if (failures > 0) log.info('the history is written again')
        failures = 0
      } catch (thrown) {
        if (signal.aborted) break
        if (!(thrown instanceof CouchError)) throw thrown
        failures += 1
        const { code, message: reason } = thrown
        log[failures === 1 ? 'warn' : 'debug']({ code, reason }, 'cannot write the history; trying again')
        await clock.sleep(fullJitter(BACKOFF, failures, random), signal).catch(() => undefined)
      }
    }
    const last = new AbortController()
    const rest = this.#write(last.signal).catch(() => undefined)
    if (!(await withTimeout(clock, LAST_WORDS_MS, rest))) last.abort(new Error('the sidecar has stopped'))
  }

  async #gather(signal: AbortSignal): Promise<void> {
    const gathered = new AbortController()
    await untilAny([signal, gathered.signal], async (until) => {
      const isFull = this.#added.until(() => this.#waiting.length >= MOST_TOGETHER, until)
      await Promise.race([isFull, this.#options.clock.sleep(GATHER_MS, until)])
        .catch(() => undefined)
        .finally(() => gathered.abort())
      await isFull.catch(() => undefined)
    })
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { couch, name, clock, log } = this.#options
    if (this.#leftOut > 0)
      log.warn({ entries: this.#leftOut }, 'the history lacks entries: they came faster than written')
    this.#leftOut = 0
    while (this.#waiting.length > 0) {
      const some = this.#waiting.slice(0, MOST_TOGETHER)
      const database = databaseOf(name, clock.now())
      try {
        // Throws if the outcome is unknown. A conflict means that an earlier write of this entry lost its answer.
        for (const row of await couch.db(database).bulk(some, { signal })) writtenFrom(row)
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        await makeHistoryDatabase(couch, database, signal)
        continue
      }
      const written = new Set(some)
      this.#waiting = this.#waiting.filter((text) => !written.has(text)) // `add` may drop some meanwhile
    }
  }
}
