import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { BudgetShare } from '../core/byte-budget.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { Attempt, type AttemptEnd } from './attempt.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { Registration } from './types.ts'

/** A document to be taken all the way. */
export interface Work {
  readonly doc: StoredDoc
  /** Length of its text. */
  readonly bytes: number
  readonly registration: Registration
  readonly run: RunAttempt
  /** The part of the memory that it takes from. */
  readonly share: BudgetShare
  /** Called when what it asked for is done, or written down where it will be found again. */
  readonly settled: () => void
}

export interface Ended {
  readonly work: Work
  readonly attempt: Attempt
  readonly end: AttemptEnd
  /** The last revision that came by meanwhile and was not a claim of this attempt. */
  readonly newer: string | undefined
  /** A revision of it came by that was not read. */
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

/** What an attempt costs beside the text of its document: the parsed object, its own fields, its promises. */
const OVERHEAD_BYTES = 2048

/** All documents under way: never more than one attempt for an id, never more bytes than there is memory for. */
export class Attempts {
  readonly #options: AttemptsOptions
  readonly #byId = new Map<string, Current>()
  readonly #idle: (() => void)[] = []
  readonly #endedSince = new Set<Map<string, boolean>>()
  /** With a count it makes tokens that no other process has. */
  readonly #process = randomUUID()
  #count = 0

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byId.size
  }

  /** How many have been sent on their way. */
  get started(): number {
    return this.#count
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  /** If this document is in flight: what came by is remembered, `settled` is called with the attempt's own. */
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

  /** If this document is in flight: this revision of it came by, which asks for nothing. */
  outdate(id: string, rev: string): void {
    this.#byId.get(id)?.attempt.saw(rev)
  }

  /** If this document is in flight: this revision of it came by, and was not read. */
  noteUnread(id: string, rev: string, branched: boolean): boolean {
    const already = this.#byId.get(id)
    if (!already) return false
    already.attempt.saw(rev)
    already.attempt.maybeBranched ||= branched
    already.unread = true
    return true
  }

  /** Sends it on its way, if there is memory for it. `join` it first. */
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

  /** Which of these have an attempt that ends from now on, until `end`: what was asked for before may be older than what they saved. */
  watchEnds(wanted: readonly string[]): EndedSince {
    const ended = new Map(wanted.map((id) => [id, false]))
    this.#endedSince.add(ended)
    return { has: (id) => ended.get(id) === true, end: () => void this.#endedSince.delete(ended) }
  }

  /** The database was made again: what is in flight is of the one before. */
  forgetPast(): void {
    for (const { attempt } of this.#byId.values()) attempt.ofPast = true
  }

  /** Resolves when nothing is in flight. */
  async whenIdle(): Promise<void> {
    if (this.#byId.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Tells every handler that runs to stop. */
  stop(reason: Error): void {
    for (const { attempt } of this.#byId.values()) attempt.stop(reason)
  }

  /** Only the end of all retries, or a mistake of ours, comes here. */
  #crashed(attempt: Attempt, thrown: unknown): AttemptEnd {
    if (!attempt.stopped)
      this.#options.log.error({ doc: attempt.id, err: thrown }, 'internal error: an attempt broke off')
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
