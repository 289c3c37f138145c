import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { Semaphore } from '../core/semaphore.ts'
import { withTimeout } from '../core/timeout.ts'
import type { Couch } from '../couch/client.ts'
import { CouchError, isCouchError, isOfOneDatabase, unreadInWords } from '../couch/couch-errors.ts'
import type { Survey } from '../couch/survey.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import { countDocumentsWithin } from '../docstate/operator/count-documents.ts'

export interface PerDatabaseOptions<T> {
  readonly survey: Survey
  /** Names and globs. */
  readonly patterns: readonly string[]
  readonly clock: Clock
  /** Ends all requests. */
  readonly signal: AbortSignal
  /** Throws `CouchError`: `timeout` where its index is being built. */
  readonly read: (name: string) => Promise<T>
}

/** What was read of all databases. */
export interface Looked<T> {
  /** As far as they are read, in the order of their names. */
  readonly databases: readonly T[]
  /** Of how many. */
  readonly total: number
  /** Whether all of them are. */
  readonly isWhole: boolean
  /** Whether all have been, at some time: what is there now is no part of them. */
  readonly isKnown: boolean
  /** Of which databases CouchDB says that they cannot be read, and what. */
  readonly unread: readonly string[]
  /** Why none can be read now; what is shown may be older then. */
  readonly trouble: string | undefined
}

/** What is no older is not looked at again: so all open pages cost what one does. */
const FRESH_MS = 4000
/** A page waits so long for them, and is shown with what there is then. */
const PATIENCE_MS = 700
const TOGETHER = 8

/** Something of each database: read when someone asks, of those alone that have changed since. */
export class PerDatabase<T> {
  readonly #options: PerDatabaseOptions<T>
  readonly #known = new Map<string, { readonly mark: string; readonly value: T }>()
  /** Why they are not read. */
  readonly #unread = new Map<string, string>()
  #total = 0
  #isListed = false
  #isKnown = false
  #lookedAt = -Infinity
  #looking: Promise<void> | undefined
  #trouble: string | undefined

  constructor(options: PerDatabaseOptions<T>) {
    this.#options = options
  }

  /** What is known now, after a short wait for news where it is older than so many milliseconds. */
  async look(freshMs = FRESH_MS, patienceMs = PATIENCE_MS): Promise<Looked<T>> {
    const { clock, signal } = this.#options
    if (clock.ticks() - this.#lookedAt > freshMs) {
      this.#looking ??= this.#read().finally(() => (this.#looking = undefined))
      await withTimeout(clock, patienceMs, this.#looking, signal)
    }
    const databases = [...this.#known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { value }]) => value)
    const total = Math.max(this.#total, databases.length)
    const isWhole = this.#isListed && databases.length === total
    this.#isKnown ||= isWhole
    const unread = [...this.#unread.values()].sort()
    return { databases, total, isWhole, isKnown: this.#isKnown, unread, trouble: this.#trouble }
  }

  /** After a write of ours: what was read before is old. */
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
      for (const names of [this.#known, this.#unread])
        for (const name of names.keys()) if (!there.has(name)) names.delete(name)
      for await (const readings of survey.read(names, signal)) {
        const changed = [...readings].filter(
          ([name, reading]) => this.#known.get(name)?.mark !== JSON.stringify(reading),
        )
        await Promise.all(
          changed.map(([name, reading]) => semaphore.run(() => this.#readOne(name, JSON.stringify(reading)))),
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

  async #readOne(name: string, mark: string): Promise<void> {
    try {
      this.#known.set(name, { mark, value: await this.#options.read(name) })
      this.#unread.delete(name)
    } catch (thrown) {
      if (!isOfOneDatabase(thrown)) throw thrown
      if (thrown.code !== 'timeout') this.#unread.set(name, unreadInWords(name, thrown)) // else it is read when it can be
    }
  }
}

/** How many documents stand how. */
export type Counted = Looked<CountedDatabase>

/** A database whose index is being built for longer holds up no other: it is counted when its index is there. */
const INDEX_MS = 3000

export const createCounts = ({
  couch,
  ...options
}: Omit<PerDatabaseOptions<never>, 'read'> & { readonly couch: Couch }) =>
  new PerDatabase<CountedDatabase>({
    ...options,
    async read(name) {
      try {
        return { name, counted: await countDocumentsWithin(couch.db(name), INDEX_MS, options.signal) }
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        return { name, counted: undefined }
      }
    },
  })
