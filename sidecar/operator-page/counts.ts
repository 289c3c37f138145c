import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { Semaphore } from '../core/semaphore.ts'
import { withTimeout } from '../core/timeout.ts'
import type { Couch } from '../couch/client.ts'
import { CouchError, isCouchError, isServerAway } from '../couch/errors.ts'
import type { Survey } from '../couch/survey.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import { countDocumentsWithin } from '../docstate/operator/status.ts'

export interface CountsOptions {
  readonly couch: Couch
  readonly survey: Survey
  /** Names and globs. */
  readonly patterns: readonly string[]
  readonly clock: Clock
  /** Ends all requests. */
  readonly signal: AbortSignal
}

export interface Counted {
  /** As far as they are counted, in the order of their names. */
  readonly databases: readonly CountedDatabase[]
  /** Of how many. */
  readonly total: number
  /** Whether all of them are. */
  readonly isWhole: boolean
  /** Whether all have been, at some time: what is there now is no part of them. */
  readonly isKnown: boolean
  /** Why they cannot be counted now; what is shown may be older then. */
  readonly trouble: string | undefined
}

/** What is no older is not looked at again: so all open pages cost what one does. */
const FRESH_MS = 4000
/** A page waits so long for the counts, and is shown with what there is then. */
const PATIENCE_MS = 700
const TOGETHER = 8
/** A database whose index is being built for longer holds up no other: it is counted when its index is there. */
const INDEX_MS = 3000

/** How many documents stand how, in all databases: counted when someone asks, of those alone that have changed since. */
export class Counts {
  readonly #options: CountsOptions
  readonly #known = new Map<string, { readonly mark: string; readonly counted: CountedDatabase }>()
  #total = 0
  #isListed = false
  #isKnown = false
  #lookedAt = -Infinity
  #looking: Promise<void> | undefined
  #trouble: string | undefined

  constructor(options: CountsOptions) {
    this.#options = options
  }

  /** What is known now, after a short wait for news where it is older than so many milliseconds. */
  async look(freshMs = FRESH_MS): Promise<Counted> {
    const { clock, signal } = this.#options
    if (clock.ticks() - this.#lookedAt > freshMs) {
      this.#looking ??= this.#read().finally(() => (this.#looking = undefined))
      await withTimeout(clock, PATIENCE_MS, this.#looking, signal)
    }
    const databases = [...this.#known.values()].map(({ counted }) => counted)
    databases.sort((a, b) => (a.name < b.name ? -1 : 1))
    const total = Math.max(this.#total, databases.length)
    const isWhole = this.#isListed && databases.length === total
    this.#isKnown ||= isWhole
    return { databases, total, isWhole, isKnown: this.#isKnown, trouble: this.#trouble }
  }

  /** After a write of ours: what was counted before is old. */
  expire(): void {
    this.#lookedAt = -Infinity
  }

  async #read(): Promise<void> {
    const { survey, patterns, clock, signal } = this.#options
    const semaphore = new Semaphore(() => TOGETHER)
    try {
      const names = await survey.list((name) => isAmong(name, patterns), signal)
      this.#total = names.length
      this.#isListed = true
      const there = new Set(names)
      for (const name of this.#known.keys()) if (!there.has(name)) this.#known.delete(name)
      for await (const readings of survey.read(names, signal)) {
        const changed = [...readings].filter(
          ([name, reading]) => this.#known.get(name)?.mark !== JSON.stringify(reading),
        )
        await Promise.all(
          changed.map(([name, reading]) => semaphore.run(() => this.#count(name, JSON.stringify(reading)))),
        )
      }
      this.#lookedAt = clock.ticks()
      this.#trouble = undefined
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      this.#trouble = `CouchDB does not answer (${thrown.code}): what is shown may be old.`
    }
  }

  async #count(name: string, mark: string): Promise<void> {
    const { couch, signal } = this.#options
    try {
      const counted = await countDocumentsWithin(couch.db(name), INDEX_MS, signal)
      this.#known.set(name, { mark, counted: { name, counted } })
    } catch (thrown) {
      if (isCouchError(thrown, 'not_found')) this.#known.set(name, { mark, counted: { name, counted: undefined } })
      else if (!isCouchError(thrown) || isServerAway(thrown.code)) throw thrown // of one database: what was known of it stays
    }
  }
}
