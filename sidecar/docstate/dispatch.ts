import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import type { BudgetShare } from '../core/byte-budget.ts'
import { compareRevs, type StoredDoc } from '../couch/documents.ts'
import { docstateOf, isIdle, type Classify } from './classify.ts'
import type { Counters } from './counters.ts'
import type { DelayQueue } from './finding/delay-queue.ts'
import type { AttemptEnd } from './attempt.ts'
import { Attempts, type Ended } from './attempts.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { HandlerQueue, QueueOf } from './finding/handler-queues.ts'
import type { LeaseWatch } from './claims/lease-watch.ts'
import { keyOrNone } from './keys.ts'
import { withDocstate } from './outcome-documents.ts'
import type { Shadows } from './shadows.ts'
import type { Registration } from './types.ts'
import type { WriteDoc } from './write-doc.ts'

export interface DispatchOptions {
  readonly classify: Classify
  /** Whether a document is in this worker's partition. */
  readonly isOurs: (doc: StoredDoc) => boolean
  readonly queueOf: QueueOf
  /** For an entry whose worker was lost. */
  readonly rescue: { readonly run: RunAttempt; readonly share: BudgetShare }
  /** For a document with branches. */
  readonly resolve: { readonly run: RunAttempt; readonly share: BudgetShare }
  readonly writeDoc: WriteDoc
  /** Gets each document that needs work, except conflicts. */
  readonly shadows: Shadows
  readonly delayQueue: DelayQueue
  /** Watches the claims of other workers. */
  readonly leases: LeaseWatch
  /** Called after an attempt that met another writer or an error. */
  readonly onTrouble: () => void
  /** Called when a document is left to a later resync, because its handler is paused. */
  readonly onPaused: (registration: Registration) => void
  readonly counts: Counters
  readonly clock: Clock
  readonly log: Logger
  /** Called when a queue has no room for a document. The document is not held; a list finds it again. */
  readonly onFull: (queue: HandlerQueue) => void
}

/** Delay before another look at a document that was not taken. */
const AGAIN_MS = 30_000
const SOON_MS = 1000
/** Ends of attempts that met another writer or an error. */
const TROUBLES: readonly AttemptEnd[] = ['not-ours', 'overtaken', 'look-again', 'not-taken']
/** Leases before this worker rescues an entry outside its partition: the document's own worker comes first. */
const OTHERS_LEASES = 1.5

/**
 * Decides what to do with each document, and does it once. An id has one attempt. Revisions that arrive meanwhile
 * collapse into one look afterwards. The sidecar's own writes trigger nothing.
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
   * Classifies a document and starts its work. Returns the document's queue if that has no room; then nothing was done.
   *
   * @param bytes length of the document's text
   * @param settled called when the work is done, or recorded; a resync finds the documents of other workers
   * @param anyway take also a document outside this worker's partition
   */
  offer(doc: StoredDoc, bytes: number, settled: () => void, anyway = false): HandlerQueue | undefined {
    if (this.attempts.join(doc, settled)) return undefined
    const { classify, isOurs, clock, delayQueue, leases, queueOf, rescue, resolve } = this.#options
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
        const run = classification.kind === 'untimed' ? this.#startTimeout(classification.until) : queue.run
        return this.attempts.tryStart({ doc, bytes, settled, ...queue, run }) ? undefined : queue
      }
    }
    settled()
    return undefined
  }

  /** Records the end of a state's timeout in the document, so that any worker ends the state on time. */
  #startTimeout(until: number): RunAttempt {
    const { writeDoc, log } = this.#options
    return async (attempt) => {
      const { id, doc } = attempt
      const docstate = { ...docstateOf(doc), state: String(doc.state), timeout_at: isoTime(until) }
      const outcome = await writeDoc(attempt, withDocstate(doc, docstate))
      if (outcome.kind === 'lost') return 'overtaken'
      if (outcome.kind !== 'refused') return 'settled'
      log.warn({ doc: id, ...outcome.failure }, 'CouchDB refuses to store the timeout of a state')
      return 'not-taken'
    }
  }

  /** Notes a revision without its document. True if it needs no read, or the document's attempt takes care of it. */
  passUnread(id: string, rev: string, branched: boolean): boolean {
    return this.attempts.noteUnread(id, rev, branched) || (!branched && this.isPast(id, rev))
  }

  /** Whether a revision needs no work, because this worker saved it or a later one. */
  isPast(id: string, rev: string): boolean {
    return this.#ownRevisions.covers(id, rev)
  }

  /** Call when the database was recreated. */
  forgetPast(): void {
    this.#ownRevisions.clear()
    this.attempts.forgetPast()
  }

  /** Schedules another look at a document: the last read may be older than its current state. */
  lookAgain(id: string, afterMs = 0): void {
    const { delayQueue, clock } = this.#options
    delayQueue.add(id, clock.now() + afterMs)
  }

  /**
   * Forgets a document that needs no work, or no more, or is deleted. A check that is due later stays: on a cluster, the
   * row may come from a copy that lacks a branch or a revision.
   */
  pass(id: string, rev?: string): void {
    if (rev !== undefined) {
      this.attempts.outdate(id, rev)
      this.#ownRevisions.covers(id, rev) // also forgets the saved revision
    }
    this.#options.leases.forget(id)
  }

  #ended({ work, attempt, end, newer, unread }: Ended): void {
    const { delayQueue, leases, clock } = this.#options
    if (end === 'not-ours') this.#options.counts.contended += 1
    const needsWork = !isIdle(this.#options.classify(attempt.doc, clock.now()))
    if (end === 'settled') leases.forget(attempt.id)
    if (end === 'paused') this.#options.onPaused(attempt.registration)
    if (TROUBLES.includes(end) || attempt.doc._conflicts) this.#options.onTrouble()
    const cameBy = attempt.seen !== undefined && compareRevs(attempt.seen, attempt.doc._rev) >= 0
    if (attempt.saved && !attempt.ofPast && !cameBy) this.#ownRevisions.add(attempt.doc, needsWork)
    const hadBranches = attempt.branched || attempt.doc._conflicts !== undefined
    const changed = newer !== undefined && (hadBranches || newer !== attempt.doc._rev)
    const needsMore = needsWork && attempt.seen === attempt.doc._rev
    const toRead = unread && (attempt.maybeBranched || attempt.ofPast || attempt.outdated || needsMore)
    if (changed || toRead || end === 'look-again') delayQueue.add(attempt.id)
    else if (end === 'not-ours' || end === 'overtaken') delayQueue.add(attempt.id, clock.now() + SOON_MS)
    else if (end === 'not-taken') delayQueue.add(attempt.id, clock.now() + AGAIN_MS)
    else if (newer !== undefined) this.#again(attempt.doc, work.bytes)
  }

  /** Looks again at a saved document whose row arrived during the attempt: it may need another handler or attempt. */
  #again(doc: StoredDoc, bytes: number): void {
    const full = this.offer(doc, bytes, () => undefined)
    if (full) this.#options.onFull(full)
  }
}

/** Maximum number of remembered revisions. */
const MOST_REVISIONS = 10_000
/** Maximum length of a remembered id, in characters. Documents with longer ids are read once more. */
const LONGEST_ID = 200

/**
 * The last revisions that this worker saved. They identify feed rows older than the saved document: a resync may have
 * found it before the feed.
 */
class OwnRevisions {
  readonly #saved = new Map<string, { readonly rev: string; readonly needsWork: boolean }>()

  /** @param needsWork whether the document needs another handler or attempt */
  add({ _id: id, _rev: rev }: StoredDoc, needsWork: boolean): void {
    this.#saved.delete(id)
    if (id.length <= LONGEST_ID) this.#saved.set(id, { rev, needsWork })
    if (this.#saved.size > MOST_REVISIONS) this.#saved.delete(this.#saved.keys().next().value!)
  }

  /** Call when the database was recreated: its revisions are different. */
  clear(): void {
    this.#saved.clear()
  }

  /**
   * Whether a revision needs no more work. The saved revision is forgotten once it or a later one arrives: no older one
   * follows.
   */
  covers(id: string, rev: string): boolean {
    const known = this.#saved.get(id)
    if (known === undefined) return false
    const order = compareRevs(rev, known.rev)
    if (order >= 0) this.#saved.delete(id)
    return order < 0 || (order === 0 && !known.needsWork)
  }
}
