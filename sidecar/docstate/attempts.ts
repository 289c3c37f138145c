import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { BudgetShare } from '../core/byte-budget.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { Attempt, type AttemptEnd } from './attempt.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { Registration } from './types.ts'

/** A document to process, with its handler. */
export interface Work {
  readonly doc: StoredDoc
  /** Length of the document's text. */
  readonly bytes: number
  readonly registration: Registration
  readonly run: RunAttempt
  /** The share of the byte budget that the attempt uses. */
  readonly share: BudgetShare
  /** Called when the document's work is done, or recorded where a later read finds it. */
  readonly settled: () => void
}

export interface Ended {
  readonly work: Work
  readonly attempt: Attempt
  readonly end: AttemptEnd
  /** The last revision that arrived during the attempt and does not carry its claim. */
  readonly newer: string | undefined
  /** True if a revision of the document arrived but was not read. */
  readonly unread: boolean
}

interface Current {
  readonly work: Work
  readonly attempt: Attempt
  newer: string | undefined
  unread: boolean
  readonly settled: (() => void)[]
}

export interface EndedSince {
  readonly has: (id: string) => boolean
  readonly end: () => void
}

export interface AttemptsOptions {
  readonly log: Logger
  readonly onEnded: (ended: Ended) => void
}

/** Memory of an attempt beside its document's text: parsed object, own fields, promises. */
const OVERHEAD_BYTES = 2048

/** All attempts under way: one per id, and no more bytes than the byte budget allows. */
export class Attempts {
  readonly #options: AttemptsOptions
  readonly #byId = new Map<string, Current>()
  readonly #idle: (() => void)[] = []
  readonly #endedSince = new Set<Map<string, boolean>>()
  /** Together with a count, it makes tokens that are unique across processes. */
  readonly #process = randomUUID()
  #count = 0

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byId.size
  }

  /** Whether attempts exist and all of them wait for a turn. */
  get allWait(): boolean {
    for (const { attempt } of this.#byId.values()) if (!attempt.waits) return false
    return this.#byId.size > 0
  }

  /** Number of attempts started so far. */
  get started(): number {
    return this.#count
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  /** If the document has an attempt: adds this revision and `settled` to the attempt, and returns true. */
  join(doc: StoredDoc, settled: () => void): boolean {
    const already = this.#byId.get(doc._id)
    if (!already) return false
    const { attempt } = already
    if (doc._conflicts) attempt.branched = true
    if (attempt.branched || docstateOf(doc)?.claim?.token !== attempt.token) {
      already.newer = doc._rev
      attempt.saw(doc._rev)
    }
    already.settled.push(settled)
    return true
  }

  /** If the document has an attempt: notes a revision that needs no work. */
  outdate(id: string, rev: string): void {
    this.#byId.get(id)?.attempt.saw(rev)
  }

  /** If the document has an attempt: notes a revision that was not read, and returns true. */
  noteUnread(id: string, rev: string, branched: boolean): boolean {
    const already = this.#byId.get(id)
    if (!already) return false
    already.attempt.saw(rev)
    already.attempt.maybeBranched ||= branched
    already.unread = true
    return true
  }

  /** Starts an attempt if the byte budget has room. Call `join` first. */
  tryStart(work: Work): boolean {
    const { doc, bytes, registration, run, share, settled } = work
    const cost = bytes + OVERHEAD_BYTES
    if (!share.tryEnter(cost)) return false
    const attempt = new Attempt(registration, doc, `${this.#process}/${++this.#count}`)
    const entry: Current = { work, attempt, newer: undefined, unread: false, settled: [settled] }
    this.#byId.set(doc._id, entry)
    void run(attempt)
      .catch((thrown: unknown) => this.#crashed(attempt, thrown))
      .then((end) => this.#end(entry, end, cost))
    return true
  }

  /** Records which of these ids end an attempt before `end` is called. A read requested earlier may miss their save. */
  watchEnds(wanted: readonly string[]): EndedSince {
    const ended = new Map(wanted.map((id) => [id, false]))
    this.#endedSince.add(ended)
    return { has: (id) => ended.get(id) === true, end: () => void this.#endedSince.delete(ended) }
  }

  /** Marks all attempts as belonging to the previous database: the database was recreated. */
  forgetPast(): void {
    for (const { attempt } of this.#byId.values()) attempt.ofPast = true
  }

  /** Resolves when no attempt is under way. */
  async whenIdle(): Promise<void> {
    if (this.#byId.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Stops every running handler. */
  stop(reason: Error): void {
    for (const { attempt } of this.#byId.values()) attempt.stop(reason)
  }

  /** Handles the end of all retries, or a bug in the sidecar: no other error arrives here. */
  #crashed(attempt: Attempt, thrown: unknown): AttemptEnd {
    if (!attempt.stopped) this.#options.log.error({ doc: attempt.id, err: thrown }, 'internal error: an attempt failed')
    return attempt.stopped ? 'given-up' : 'not-taken'
  }

  #end({ work, attempt, newer, unread, settled }: Current, end: AttemptEnd, cost: number): void {
    this.#byId.delete(attempt.id)
    for (const wanted of this.#endedSince) if (wanted.has(attempt.id)) wanted.set(attempt.id, true)
    work.share.leave(cost)
    if (end !== 'given-up') for (const settle of settled) settle()
    this.#options.onEnded({ work, attempt, end, newer, unread })
    if (this.#byId.size === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
