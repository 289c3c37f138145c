import { createHash } from 'node:crypto'
import { createMutex, type Mutex } from '../core/mutex.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './classify.ts'
import { compareRevs } from '../couch/documents.ts'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Docstate, Registration, Steps } from './types.ts'

/** How an attempt ends: see the head of `run-attempt.ts`. */
export type AttemptEnd = 'settled' | 'not-ours' | 'not-taken' | 'look-again' | 'paused' | 'given-up'

/**
 * One document on its way through claim, handler and save. There is never more than one for an id, and thousands of
 * them wait at a time: what only a few need is made when it is asked for.
 */
export class Attempt {
  readonly registration: Registration
  /** Tells this try from all others of all workers; written into the claim. */
  readonly token: string
  /** The revision with which the entry began. */
  readonly entry: string
  /** What the state was called then. */
  readonly enteredIn: string
  /** What the engine knew about this entry before this try. */
  before: Docstate | undefined
  /** The document as we last read or wrote it; of an unsafe handler, with our claim. */
  doc: StoredDoc
  /** The document as its handler has it: it was given this, or has saved it. */
  given: Doc | undefined
  /** When our claim was last known to be ours, by our own clock (ticks). Undefined without a claim. */
  provenAt: number | undefined
  /** What our claim says: that its handler has begun, or does at once. */
  begun = false
  /** Effects seen to happen on this try or before (Message-IDs): whatever becomes of it, another try must know them. */
  done: readonly string[]
  /** Results of its handler's steps, on this try or before. */
  steps: Steps
  /** How long its claim is believed, where it says another time than all others: milliseconds. */
  leaseMs: number | undefined
  /** When its handler began, by the clock's ticks, and how long it ran, milliseconds; undefined until it has ended. */
  beganAt = 0
  tookMs: number | undefined
  /** The handler has saved the document in another state by itself. */
  left = false
  /** What came of it is stored as `doc`. */
  saved = false
  /** The database was made again since. */
  ofPast = false
  /** A row whose document was not read names other revisions: branches, or some that are deleted. */
  maybeBranched = false
  /** It has branches. */
  branched = false
  /** The highest revision that came by, and was not told to be ours. It may be, if it came before our answer. */
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

  /** A later revision than ours, or a branch, came by: the document that we have is not the one to begin with. */
  get outdated(): boolean {
    return this.branched || (this.seen !== undefined && compareRevs(this.seen, this.doc._rev) > 0)
  }

  saw(rev: string): void {
    if (this.seen === undefined || compareRevs(rev, this.seen) > 0) this.seen = rev
  }

  /** One write on the document at a time: a renewal, the handler's own save, the last save. */
  get mutex(): Mutex {
    return (this.#mutex ??= createMutex())
  }

  /** Why its handler was told to stop: the claim is lost, or the sidecar has no more time. */
  get stopped(): Error | undefined {
    return this.#stopped
  }

  /** Aborts when the attempt is stopped, and with the end of its handler. */
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

  /** Its handler has ended: what it left running is told so. */
  end(): void {
    this.#ended = true
    this.#controller?.abort(hasEnded())
  }

  /** Does not wait for work that does not listen to its signal; what it still does counts for nothing. */
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

/** `ctx.key`: the same for every try of one entry on any worker, since all of them read it off the document. */
export function entryKey(database: string, { id, enteredIn, entry }: Attempt): string {
  const parts = [database, id, enteredIn, entry]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
}

/** How many tries of this entry have failed. What a client wrote there does not count as a number. */
export const failedTries = (docstate: Docstate | undefined): number =>
  Number.isSafeInteger(docstate?.attempts) ? Math.max(0, docstate!.attempts!) : 0

/** How many workers were lost while its handler ran. */
export const timesLost = (docstate: Docstate | undefined): number =>
  Number.isSafeInteger(docstate?.lost) ? Math.max(0, docstate!.lost!) : 0

/** When the first of them failed. */
export const failingSince = (docstate: Docstate | undefined): string | undefined =>
  typeof docstate?.failing_since === 'string' && !Number.isNaN(Date.parse(docstate.failing_since))
    ? docstate.failing_since
    : undefined

/** What the state of the entry was called when it began, if it has another name now. */
export const enteredIn = (docstate: Docstate | undefined): string | undefined =>
  typeof docstate?.entered_in === 'string' ? docstate.entered_in : undefined

export const stepsDone = (docstate: Docstate | undefined): Steps => (isObject(docstate?.steps) ? docstate.steps : {})

export const effectsDone = (docstate: Docstate | undefined): readonly string[] =>
  Array.isArray(docstate?.done) ? docstate.done.filter((id) => typeof id === 'string') : []
