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
  /** Throws `CouchError`; its code is `timeout` while the index is being built. */
  readonly read: (name: string) => Promise<T>
}

/** The values of all databases. */
export interface Looked<T> {
  /** Values of the databases read so far, in the order of the names. */
  readonly databases: readonly T[]
  /** Number of all databases. */
  readonly total: number
  /** Whether all databases are read. */
  readonly isWhole: boolean
  /** Whether all databases have been read at some time, so that the values are not only a part. */
  readonly isKnown: boolean
  /** Sentences about databases that CouchDB cannot read, with its reason. */
  readonly unread: readonly string[]
  /** Why no database can be read now; the values may be older. */
  readonly trouble: string | undefined
}

/** Newer values are not read again, milliseconds: all open pages together cost as much as one. */
const FRESH_MS = 4000
/** Maximum wait of a page, milliseconds. Then the page shows the values read so far. */
const PATIENCE_MS = 700
const TOGETHER = 8

/** Reads a value of each database on demand, and only from databases that have changed. */
export class PerDatabase<T> {
  readonly #options: PerDatabaseOptions<T>
  readonly #known = new Map<string, { readonly mark: string; readonly value: T }>()
  /** Why databases are not read, by name. */
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

  /** Returns the known values. If they are older than `freshMs`, waits briefly for new ones. */
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

  /** Marks the values as old, after a write of this worker. */
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
      const existing = new Set(names)
      for (const names of [this.#known, this.#unread])
        for (const name of names.keys()) if (!existing.has(name)) names.delete(name)
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
      if (thrown.code !== 'timeout') this.#unread.set(name, unreadInWords(name, thrown)) // `timeout`: read again later
    }
  }
}

/** Number of documents by type, state and status. */
export type Counted = Looked<CountedDatabase>
export type Counts = PerDatabase<CountedDatabase>

/** Maximum wait for an index. A longer build delays no other database: its documents are counted later. */
const INDEX_MS = 3000

export const createCounts = ({
  couch,
  ...options
}: Omit<PerDatabaseOptions<never>, 'read'> & { readonly couch: Couch }): Counts =>
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
