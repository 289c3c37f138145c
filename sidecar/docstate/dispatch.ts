import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { BudgetShare } from '../core/byte-budget.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/revs.ts'
import { isIdle, type Assess } from './assess.ts'
import type { Counts } from './counts.ts'
import type { DueQueue } from './finding/due.ts'
import { Attempts, type Ended } from './attempts.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { Lane, LaneOf } from './finding/lanes.ts'
import type { LeaseWatch } from './claims/lease-watch.ts'
import { Recent } from './recent.ts'

export interface DispatchOptions {
  readonly assess: Assess
  /** Whether this worker is the one to take a document. */
  readonly isOurs: (doc: StoredDoc) => boolean
  readonly laneOf: LaneOf
  /** What becomes of an entry whose worker was lost. */
  readonly recover: { readonly run: RunAttempt; readonly share: BudgetShare }
  /** For a document with branches. */
  readonly resolve: { readonly run: RunAttempt; readonly share: BudgetShare }
  /** For a state that ends, with no time written down. */
  readonly stamp: (afterMs: number) => RunAttempt
  readonly due: DueQueue
  /** Of the claims of other workers. */
  readonly leases: LeaseWatch
  readonly counts: Counts
  readonly clock: Clock
  readonly log: Logger
  /** A document did not find room in this lane, and nobody waits with it: the list has it. */
  readonly onFull: (lane: Lane) => void
}

/** When to look again at a document that could not be taken. */
const AGAIN_MS = 30_000
const SOON_MS = 1000
/** A claim that has died is left so long to whoever is responsible for its document. */
const OTHERS_LEASES = 1.5

/**
 * Decides for each document that comes by what is to be done, and does it once: one attempt for an id, whatever comes
 * by meanwhile collapses into "look again afterwards". Its own writes wake nothing.
 */
export class Dispatch {
  readonly attempts: Attempts
  readonly #options: DispatchOptions
  readonly #recent = new Recent()

  constructor(options: DispatchOptions) {
    this.#options = options
    this.attempts = new Attempts({ log: options.log, onEnded: (ended) => this.#ended(ended) })
  }

  /**
   * Looks at a document whose text has this length. `settled` is called when what it asks for is done, or written down
   * where it will be found again: a document that is another worker's stands in the list. `anyway` takes it all the
   * same. Answers the lane in which there is no room for it now, if so: then nothing was done.
   */
  offer(doc: StoredDoc, bytes: number, settled: () => void, anyway = false): Lane | undefined {
    if (this.attempts.join(doc, settled)) return undefined
    const { assess, isOurs, clock, due, leases, laneOf, recover, resolve, stamp } = this.#options
    const assessment = assess(doc, clock.now())
    const ours = !isIdle(assessment) && (anyway || isOurs(doc))
    switch (assessment.kind) {
      case 'ignore':
      case 'undeclared':
        this.pass(doc._id)
        break
      case 'wait':
        if (ours) due.add(doc._id, assessment.until)
        break
      case 'conflict': {
        if (!ours) break
        const { registration } = assessment
        if (this.attempts.tryStart({ doc, bytes, settled, registration, ...resolve })) return undefined
        due.add(doc._id, clock.now() + SOON_MS)
        break
      }
      case 'claimed': {
        const { claim, registration } = assessment
        const remaining = leases.remaining(doc, claim, ours ? 1 : OTHERS_LEASES)
        if (remaining === 0 && this.attempts.tryStart({ doc, bytes, settled, registration, ...recover }))
          return undefined
        due.add(doc._id, clock.now() + (remaining || SOON_MS))
        break
      }
      case 'untimed':
      case 'ready': {
        leases.forget(doc._id)
        if (!ours) break
        const lane = laneOf(assessment.registration)
        const run = assessment.kind === 'untimed' ? stamp(assessment.afterMs) : lane.run
        return this.attempts.tryStart({ doc, bytes, settled, ...lane, run }) ? undefined : lane
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
    return this.#recent.covers(id, rev)
  }

  /** The database was made again. */
  forgetPast(): void {
    this.#recent.clear()
    this.attempts.forgetPast()
  }

  /** What was read may be older than what has become of the document. */
  lookAgain(id: string, afterMs = 0): void {
    const { due, clock } = this.#options
    due.add(id, clock.now() + afterMs)
  }

  /** A document that asks for nothing, or not any more, or is gone. */
  pass(id: string, rev?: string): void {
    if (rev !== undefined) {
      this.attempts.outdate(id, rev)
      this.#recent.covers(id, rev) // and forgets it
    }
    this.#options.leases.forget(id)
    this.#options.due.forget(id)
  }

  #ended({ work, attempt, end, newer, unread }: Ended): void {
    const { due, leases, clock } = this.#options
    if (end === 'not-ours') this.#options.counts.inVain += 1
    const asks = !isIdle(this.#options.assess(attempt.doc, clock.now()))
    if (end === 'settled') leases.forget(attempt.id)
    const cameBy = attempt.seen !== undefined && compareRevs(attempt.seen, attempt.doc._rev) >= 0
    if (attempt.saved && !attempt.ofPast && !cameBy) this.#recent.add(attempt.doc, asks)
    const hadBranches = attempt.branched || attempt.doc._conflicts !== undefined
    const changed = newer !== undefined && (hadBranches || newer !== attempt.doc._rev)
    const asksMore = asks && attempt.seen === attempt.doc._rev
    const toRead = unread && (attempt.maybeBranched || attempt.ofPast || attempt.outdated || asksMore)
    if (changed || toRead || end === 'look-again') due.add(attempt.id)
    else if (end === 'not-taken') due.add(attempt.id, clock.now() + AGAIN_MS)
    else if (newer !== undefined) this.#again(attempt.doc, work.bytes)
  }

  /** What we saved came by while we were not done: it may ask for more, as another state or another try. */
  #again(doc: StoredDoc, bytes: number): void {
    const full = this.offer(doc, bytes, () => undefined)
    if (full) this.#options.onFull(full)
  }
}
