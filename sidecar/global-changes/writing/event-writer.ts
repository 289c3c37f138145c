import type { Logger } from 'pino'
import { fullJitter, type Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import { CouchError, isCouchError, type CouchErrorCode } from '../../couch/couch-errors.ts'
import { writtenFrom } from '../../couch/written.ts'

/** The documents to write for some events. */
export interface EventPlan {
  /** Ids of documents, in write order: each list after the one before. */
  readonly steps: readonly (readonly string[])[]
  /** Called when all documents are written. */
  readonly onWritten: () => void
}

export interface EventWriterOptions {
  /** `global_changes` */
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Creates the missing database. Throws `CouchError`. */
  readonly onMissing: () => Promise<void>
  /** Called before each attempt to write events. If it throws `CouchError`, they are retried later. */
  readonly plan: (ids: readonly string[]) => Promise<EventPlan>
}

const MAX_DOCS = 1000
const MAX_REVS = 100_000
const BACKOFF = { baseMs: 250, capMs: 15_000 }
const SLOWLY_MS = 30_000

/**
 * Writes event documents, each time as a new revision without a body. A failed write stays pending, and is repeated
 * with newer events.
 */
export class EventWriter {
  /** Documents written, requests made, and conflicting revisions found (expected: none). */
  readonly counts = { written: 0, requests: 0, conflicts: 0 }
  readonly #options: EventWriterOptions
  readonly #pending = new Set<string>()
  /** Revisions of the documents that were last written or read. */
  readonly #revs = new Map<string, string>()
  #running: Promise<void> | undefined
  /** In clock ticks: arrival of the oldest pending event, and of the oldest event that is being written. */
  #pendingSince: number | undefined
  #writingSince: number | undefined
  /** Changes when pending events are dropped: a write that then fails is not repeated. */
  #life = 0

  constructor(options: EventWriterOptions) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  /** In clock ticks: arrival of the oldest event that is not yet written; undefined if all are. */
  get since(): number | undefined {
    return this.#writingSince ?? this.#pendingSince
  }

  add(ids: Iterable<string>): void {
    for (const id of ids) this.#pending.add(id)
    if (this.#pending.size === 0) return
    this.#pendingSince ??= this.#options.clock.ticks()
    this.#start()
  }

  /** Drops pending events. */
  clear(): void {
    this.#life += 1
    this.#pending.clear()
    this.#pendingSince = this.#writingSince = undefined
  }

  /** Resolves when nothing is pending. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      // An event may be added after the loop has ended and before this runs.
      if (this.#pending.size > 0 && !this.#options.signal.aborted) this.#start()
    })
  }

  async #run(): Promise<void> {
    const { clock, random, log, signal } = this.#options
    let failures = 0
    while (this.#pending.size > 0 && !signal.aborted) {
      const ids = [...this.#pending].slice(0, MAX_DOCS)
      for (const id of ids) this.#pending.delete(id)
      this.#writingSince = this.#pendingSince
      if (this.#pending.size === 0) this.#pendingSince = undefined
      const life = this.#life
      try {
        await this.#carryOut(ids)
        this.#writingSince = undefined
        if (failures > 0) log.info('database events can be written again')
        failures = 0
      } catch (thrown) {
        if (signal.aborted) return
        if (!(thrown instanceof CouchError)) throw thrown
        if (life === this.#life) {
          for (const id of ids) this.#pending.add(id)
          this.#pendingSince = this.#writingSince
        }
        this.#writingSince = undefined
        failures += 1
        const waitMs = thrown.retry === 'soon' ? fullJitter(BACKOFF, failures, random) : SLOWLY_MS
        log[failures === 1 ? 'warn' : 'debug'](
          { code: thrown.code, reason: thrown.message, waitMs },
          'cannot write database events; keeping them until CouchDB takes them',
        )
        await clock.sleep(waitMs, signal).catch(() => undefined)
      }
    }
  }

  async #carryOut(ids: readonly string[]): Promise<void> {
    try {
      const { steps, onWritten } = await this.#options.plan(ids)
      for (const step of steps) if (step.length > 0) await this.#write(step)
      onWritten()
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      this.#revs.clear()
      await this.#options.onMissing()
      throw new CouchError('server', { request: 'POST _bulk_docs', reason: 'the database was missing' })
    }
  }

  async #write(ids: readonly string[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#revs.has(id))
    await this.#read(unknown)
    const beaten = await this.#bulk(ids)
    // A conflict right after a read means that another source has reported the event since.
    const stale = beaten.filter((id) => !unknown.includes(id))
    if (stale.length === 0) return
    await this.#read(stale)
    await this.#bulk(stale)
  }

  async #read(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const { database, signal } = this.#options
    this.counts.requests += 1
    for (const id of ids) this.#revs.delete(id)
    for (const { _id, _rev, _conflicts } of await database.getMany(ids, { signal })) {
      this.#remember(_id, _rev)
      this.counts.conflicts += _conflicts?.length ?? 0
    }
  }

  /** Returns the ids with a newer revision than the known one. */
  async #bulk(ids: readonly string[]): Promise<string[]> {
    const { database, signal } = this.#options
    this.counts.requests += 1
    const docs = ids.map((_id) => JSON.stringify({ _id, _rev: this.#revs.get(_id) }))
    const rows = await database.bulk(docs, { signal })
    const beaten: string[] = []
    for (const row of rows) {
      const written = writtenFrom(row)
      if (written.kind === 'refused') throw refusal(row.id, written)
      if (written.kind === 'conflict') beaten.push(row.id)
      else this.#remember(row.id, written.rev)
    }
    for (const id of beaten) this.#revs.delete(id)
    this.counts.written += rows.length - beaten.length
    return beaten
  }

  #remember(id: string, rev: string): void {
    this.#revs.delete(id)
    this.#revs.set(id, rev)
    if (this.#revs.size > MAX_REVS) for (const oldest of this.#revs.keys()) return void this.#revs.delete(oldest)
  }
}

const refusal = (id: string, { code, reason }: { code: CouchErrorCode; reason: string }) =>
  new CouchError(code, { request: 'POST _bulk_docs', rowOf: id, reason })
