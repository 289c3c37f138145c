import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { BudgetShare } from '../core/byte-budget.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/documents.ts'
import { isIdle, type Classify } from './classify.ts'
import type { Counters } from './counters.ts'
import type { DelayQueue } from './finding/delay-queue.ts'
import { Attempts, type Ended } from './attempts.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { HandlerQueue, QueueOf } from './finding/handler-queues.ts'
import type { LeaseWatch } from './claims/lease-watch.ts'
import { keyOrNone } from './keys.ts'
import type { Shadows } from './shadows.ts'
import { OwnRevisions } from './own-revisions.ts'
import type { Registration } from './types.ts'

export interface DispatchOptions {
  readonly classify: Classify
  /** Whether this worker is the one to take a document. */
  readonly isOurs: (doc: StoredDoc) => boolean
  readonly queueOf: QueueOf
  /** What becomes of an entry whose worker was lost. */
  readonly rescue: { readonly run: RunAttempt; readonly share: BudgetShare }
  /** For a document with branches. */
  readonly resolve: { readonly run: RunAttempt; readonly share: BudgetShare }
  /** For a state that ends, with no time written down. */
  readonly startTimeout: (until: number) => RunAttempt
  /** Told of each document in a state that asks for something. */
  readonly shadows: Shadows
  readonly delayQueue: DelayQueue
  /** Of the claims of other workers. */
  readonly leases: LeaseWatch
  /** A document was left in the list, since this handler is paused. */
  readonly onPaused: (registration: Registration) => void
  readonly counts: Counters
  readonly clock: Clock
  readonly log: Logger
  /** A document found no room in this queue and is not held: the list has it. */
  readonly onFull: (queue: HandlerQueue) => void
}

/** When to look again at a document that could not be taken. */
const AGAIN_MS = 30_000
const SOON_MS = 1000
/** A claim that has died is left so long to the worker that is responsible for its document. */
const OTHERS_LEASES = 1.5

/**
 * Decides for each document that comes by what is to be done, and does it once: one attempt for an id, whatever comes
 * by meanwhile collapses into "look again afterwards". Its own writes wake nothing.
 */
export class Dispatch {
  readonly attempts: Attempts
  readonly #options: DispatchOptions
  readonly #ownRevisions = new OwnRevisions()

  constructor(options: DispatchOptions) {
    this.#options = options
    this.attempts = new Attempts({ log: options.log, onEnded: (ended) => this.#ended(ended) })
  }

  /**
   * Looks at a document whose text has this length. `settled` is called when what it asks for is done, or written down
   * where it will be found again: a document that is another worker's stands in the list. `anyway` takes it all the
   * same. Answers the queue in which there is no room for it now, if so: then nothing was done.
   */
  offer(doc: StoredDoc, bytes: number, settled: () => void, anyway = false): HandlerQueue | undefined {
    if (this.attempts.join(doc, settled)) return undefined
    const { classify, isOurs, clock, delayQueue, leases, queueOf, rescue, resolve, startTimeout } = this.#options
    const classification = classify(doc, clock.now())
    const ours = !isIdle(classification) && (anyway || isOurs(doc))
    if (!isIdle(classification) && classification.kind !== 'conflict') this.#options.shadows.offer(doc)
    switch (classification.kind) {
      case 'shadow':
      case 'ignore':
      case 'undeclared':
        this.pass(doc._id)
        break
      case 'paused':
        this.pass(doc._id)
        if (!ours) break
        this.#options.onPaused(classification.registration)
        if (classification.until !== undefined) delayQueue.add(doc._id, classification.until)
        break
      case 'wait':
        if (ours) delayQueue.add(doc._id, classification.until)
        break
      case 'conflict': {
        if (!ours) break
        const { registration } = classification
        if (this.attempts.tryStart({ doc, bytes, settled, registration, ...resolve })) return undefined
        delayQueue.add(doc._id, clock.now() + SOON_MS)
        break
      }
      case 'claimed': {
        const { claim, registration } = classification
        const remaining = leases.remaining(doc, claim, ours ? 1 : OTHERS_LEASES)
        if (remaining === 0 && this.attempts.tryStart({ doc, bytes, settled, registration, ...rescue }))
          return undefined
        delayQueue.add(doc._id, clock.now() + (remaining || SOON_MS))
        break
      }
      case 'untimed':
      case 'ready': {
        leases.forget(doc._id)
        if (!ours) break
        const { registration } = classification
        const queue = queueOf(registration)
        const key = keyOrNone(registration, doc)
        if (key !== undefined && queue.keys.isFull(key, doc._id)) break
        const run = classification.kind === 'untimed' ? startTimeout(classification.until) : queue.run
        return this.attempts.tryStart({ doc, bytes, settled, ...queue, run }) ? undefined : queue
      }
    }
    settled()
    return undefined
  }

  /** A revision came by without its document. True if it need not be read, or is by the attempt that has it. */
  passUnread(id: string, rev: string, branched: boolean): boolean {
    return this.attempts.noteUnread(id, rev, branched) || (!branched && this.isPast(id, rev))
  }

  /** Whether a revision that comes by is older than what we saved. */
  isPast(id: string, rev: string): boolean {
    return this.#ownRevisions.covers(id, rev)
  }

  /** The database was made again. */
  forgetPast(): void {
    this.#ownRevisions.clear()
    this.attempts.forgetPast()
  }

  /** What was read may be older than what has become of the document. */
  lookAgain(id: string, afterMs = 0): void {
    const { delayQueue, clock } = this.#options
    delayQueue.add(id, clock.now() + afterMs)
  }

  /** A document that asks for nothing, or not any more, or is gone. */
  pass(id: string, rev?: string): void {
    if (rev !== undefined) {
      this.attempts.outdate(id, rev)
      this.#ownRevisions.covers(id, rev) // and forgets it
    }
    this.#options.leases.forget(id)
    this.#options.delayQueue.forget(id)
  }

  #ended({ work, attempt, end, newer, unread }: Ended): void {
    const { delayQueue, leases, clock } = this.#options
    if (end === 'not-ours') this.#options.counts.inVain += 1
    const asks = !isIdle(this.#options.classify(attempt.doc, clock.now()))
    if (end === 'settled') leases.forget(attempt.id)
    if (end === 'paused') this.#options.onPaused(attempt.registration)
    const cameBy = attempt.seen !== undefined && compareRevs(attempt.seen, attempt.doc._rev) >= 0
    if (attempt.saved && !attempt.ofPast && !cameBy) this.#ownRevisions.add(attempt.doc, asks)
    const hadBranches = attempt.branched || attempt.doc._conflicts !== undefined
    const changed = newer !== undefined && (hadBranches || newer !== attempt.doc._rev)
    const asksMore = asks && attempt.seen === attempt.doc._rev
    const toRead = unread && (attempt.maybeBranched || attempt.ofPast || attempt.outdated || asksMore)
    if (changed || toRead || end === 'look-again') delayQueue.add(attempt.id)
    else if (end === 'not-taken') delayQueue.add(attempt.id, clock.now() + AGAIN_MS)
    else if (newer !== undefined) this.#again(attempt.doc, work.bytes)
  }

  /** What we saved came by while we were not done: it may ask for more, as another state or another try. */
  #again(doc: StoredDoc, bytes: number): void {
    const full = this.offer(doc, bytes, () => undefined)
    if (full) this.#options.onFull(full)
  }
}
