import { createHash } from 'node:crypto'
import { createMutex, type Mutex } from '../core/mutex.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { compareRevs } from '../couch/documents.ts'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Docstate, Registration, Steps } from './types.ts'

/** How an attempt ends: see the head of `run-attempt.ts`. */
export type AttemptEnd = 'settled' | 'not-ours' | 'overtaken' | 'not-taken' | 'look-again' | 'paused' | 'given-up'

/**
 * One document on its way through claim, handler and save. An id never has more than one attempt. Thousands of attempts
 * wait at a time, so rarely used fields are created on first use.
 */
export class Attempt {
  readonly registration: Registration
  /** Identifies this attempt among the attempts of all workers. The claim contains it. */
  readonly token: string
  /** The revision with which the entry began. */
  readonly entry: string
  /** Name of the state when the entry began. */
  readonly enteredIn: string
  /** The entry's `docstate` before this attempt. */
  before: Docstate | undefined
  /** The document as last read or written by this worker; with the attempt's claim if the handler is unsafe. */
  doc: StoredDoc
  /** The document as the handler knows it: as passed to the handler, or as the handler last saved it. */
  given: Doc | undefined
  /** Start of the lease that the attempt relies on, in ticks of the local clock. Undefined without a claim. */
  provenAt: number | undefined
  /** This lease, milliseconds. Undefined until the claim is won. */
  leaseMs: number | undefined
  /** The claim's field `begun`: the handler has begun, or begins at once. */
  begun = false
  /** Effects that happened in this or an earlier attempt (Message-IDs). Every later attempt must know them. */
  done: readonly string[]
  /** Results of the handler's steps, from this and earlier attempts. */
  steps: Steps
  /** Start of the handler in clock ticks, and its duration in milliseconds; the duration is undefined until the end. */
  beganAt = 0
  tookMs: number | undefined
  /** True until the attempt has a turn and a start within its handler's limit. Until then it writes nothing. */
  waits = true
  /** True if the handler itself has saved the document in another state. */
  left = false
  /** True if the outcome is stored; `doc` is the stored document. */
  saved = false
  /** True if the database was recreated since the attempt began. */
  ofPast = false
  /** True if a row without its document names other revisions: branches, or deleted revisions. */
  maybeBranched = false
  /** True if the document has branches. */
  branched = false
  /** Highest revision that arrived and is not known as our write. It can be ours: a row may precede the answer. */
  seen: string | undefined
  #mutex: Mutex | undefined
  #stopped: Error | undefined
  #ended = false
  #controller: AbortController | undefined
  #onStop: ((reason: Error) => void) | undefined

  constructor(registration: Registration, doc: StoredDoc, token: string) {
    this.registration = registration
    this.doc = doc
    this.token = token
    this.before = docstateOf(doc)
    this.done = effectsDone(this.before)
    this.steps = stepsDone(this.before)
    this.entry = this.before?.entry ?? doc._rev
    this.enteredIn = enteredIn(this.before) ?? registration.state
  }

  get id(): string {
    return this.doc._id
  }

  /** Whether a later revision or a branch has arrived. The handler must not start with `doc` then. */
  get outdated(): boolean {
    return this.branched || (this.seen !== undefined && compareRevs(this.seen, this.doc._rev) > 0)
  }

  /** From now on the attempt relies on this lease. */
  holds(provenAt: number, leaseMs: number): void {
    this.provenAt = provenAt
    this.leaseMs = leaseMs
  }

  saw(rev: string): void {
    if (this.seen === undefined || compareRevs(rev, this.seen) > 0) this.seen = rev
  }

  /** Serializes writes of the document: claim renewals, the handler's own saves, the last save. */
  get mutex(): Mutex {
    return (this.#mutex ??= createMutex())
  }

  /** Why the handler must stop: the claim is lost, its timeout is over, or the sidecar stops. */
  get stopped(): Error | undefined {
    return this.#stopped
  }

  /** Aborts when the attempt is stopped, and when its handler ends. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    const reason = this.#stopped ?? (this.#ended ? hasEnded() : undefined)
    if (reason) this.#controller.abort(reason)
    return this.#controller.signal
  }

  stop(reason: Error): void {
    if (this.#stopped) return
    this.#stopped = reason
    this.#onStop?.(reason)
    this.#controller?.abort(reason)
  }

  /** Marks the handler as ended. Aborts `signal` for work that the handler left running. */
  end(): void {
    this.#ended = true
    this.#controller?.abort(hasEnded())
  }

  /** Runs `work`. A stop rejects at once: work that ignores its signal is not awaited, and its result is ignored. */
  async untilStopped<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#stopped) throw this.#stopped
    const stopped = new Promise<never>((_, reject) => (this.#onStop = reject))
    try {
      return await Promise.race([work(), stopped])
    } finally {
      this.#onStop = undefined
    }
  }
}

const hasEnded = () => new Error('the handler has ended')

/** Computes `ctx.key` from database and document: all attempts of an entry have the same key on any worker. */
export function entryKey(database: string, { id, enteredIn, entry }: Attempt): string {
  const parts = [database, id, enteredIn, entry]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
}

/** Number of failed attempts of this entry; 0 if a client wrote anything but a count. */
export const failedTries = (docstate: Docstate | undefined): number =>
  Number.isSafeInteger(docstate?.attempts) ? Math.max(0, docstate!.attempts!) : 0

/** Number of workers lost while they ran the handler. */
export const timesLost = (docstate: Docstate | undefined): number =>
  Number.isSafeInteger(docstate?.lost) ? Math.max(0, docstate!.lost!) : 0

/** Time of the first failed attempt. */
export const failingSince = (docstate: Docstate | undefined): string | undefined =>
  typeof docstate?.failing_since === 'string' && !Number.isNaN(Date.parse(docstate.failing_since))
    ? docstate.failing_since
    : undefined

/** Name of the state when the entry began, if the state has another name now. */
export const enteredIn = (docstate: Docstate | undefined): string | undefined =>
  typeof docstate?.entered_in === 'string' ? docstate.entered_in : undefined

export const stepsDone = (docstate: Docstate | undefined): Steps => (isObject(docstate?.steps) ? docstate.steps : {})

export const effectsDone = (docstate: Docstate | undefined): readonly string[] =>
  Array.isArray(docstate?.done) ? docstate.done.filter((id) => typeof id === 'string') : []
