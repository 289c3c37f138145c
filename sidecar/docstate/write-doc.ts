import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Failure } from '../core/errors.ts'
import type { Logger } from 'pino'
import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc, Leaf, StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { withRetries } from '../couch/with-retries.ts'
import type { Written } from '../couch/written.ts'
import type { WriteOptions, Writer } from '../couch/writer.ts'
import { docstateOf } from './classify.ts'
import { rebase } from './outcome-documents.ts'
import type { Attempt } from './attempt.ts'
import { compareRevs } from '../couch/documents.ts'
import { heldBackoff, type ReadHeld } from './claims/read-held.ts'
import { docOf, holdsClaim, judgeOutcome, takingOut } from './claims/rivals.ts'

/** The result of a write on an attempt's document, once it is known. */
export type WriteResult =
  | { readonly kind: 'stored' }
  /** Stored below the quorum. A claim may be stored, and may be beside another worker's claim (`contest.ts`). */
  | { readonly kind: 'accepted' }
  /** Another writer has changed the document: this attempt no longer holds it. */
  | { readonly kind: 'lost' }
  /** CouchDB will never accept this document, for the given reason; a new claim may be accepted later. */
  | { readonly kind: 'refused'; readonly failure: Failure }

/**
 * Writes `doc` over `attempt.doc`, and updates `attempt.doc`. Retries until the outcome is known: a write without an
 * answer may be stored. Throws the signal's reason if the signal aborts first.
 */
export type WriteDoc = (attempt: Attempt, doc: Doc, how?: HowToWrite) => Promise<WriteResult>

export interface HowToWrite {
  /** Called at the first lost answer. */
  readonly onUnsure?: () => void
  /** Replaces the writer. Throws `CouchError` if the outcome is unknown; any other error ends the retries. */
  readonly write?: (doc: StoredDoc) => Promise<Written>
}

export interface WriteDocOptions {
  readonly database: Database
  readonly writer: Writer
  readonly readHeld: ReadHeld
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
  /** After an abort no new claim is sent, unless it may already be stored; the write throws the signal's reason. */
  readonly closing: AbortSignal
  readonly log: Logger
}

/** Maximum tries of a new claim whose row alone fails in CouchDB; then other documents get their turn. */
const MOST_CLAIMS = 5
/** Number of tries between two warnings in the log. */
const TELL_TRIES = 10

/** CouchDB, or a proxy before it, must report this many times that a document does not exist. */
const MOST_DENIALS = 4

export function createWriteDoc({
  database,
  writer,
  readHeld,
  leaseMs,
  clock,
  random,
  signal,
  closing,
  log,
}: WriteDocOptions): WriteDoc {
  const byWriter = (doc: StoredDoc, how: WriteOptions) => writer.write(doc, how)
  const backoff = heldBackoff(leaseMs)
  const retried = <T>(request: () => Promise<T>) => withRetries(request, { clock, random, signal })

  async function tryWrite(
    attempt: Attempt,
    doc: Doc,
    options: WriteOptions,
    write: (doc: StoredDoc, options: WriteOptions) => Promise<Written>,
  ): Promise<WriteResult | { readonly kind: 'conflict' } | { readonly kind: 'unknown'; readonly error: CouchError }> {
    try {
      const next = { ...doc, _id: attempt.id, _rev: attempt.doc._rev }
      const written = await write(next, options)
      if (written.kind === 'refused') return { kind: 'refused', failure: written }
      if (written.kind !== 'conflict') {
        next._rev = written.rev
        attempt.doc = next
      }
      return written
    } catch (thrown) {
      if (thrown instanceof CouchError) return { kind: 'unknown', error: thrown }
      throw thrown
    }
  }

  /**
   * Deletes the losing leaves of a race. The race follows a write on `base`, without a claim, that was stored below the
   * quorum. True if our leaf was deleted.
   */
  async function tidy(attempt: Attempt, base: StoredDoc): Promise<boolean> {
    const leaves = await retried(() => database.leaves(attempt.id, { signal }))
    const ours = leaves.find(({ _rev }) => _rev === attempt.doc._rev)
    const out = ours ? judgeOutcome(ours, base, leaves) : []
    if (!ours || out.length === 0) return false
    const kept = leaves.filter((leaf) => !leaf._deleted && !out.includes(leaf))
    await retried(() => database.merge(takingOut(out, kept), { signal }))
    return out.includes(ours)
  }

  /** Reads the current document: of several branches ours, if it exists. Undefined if all branches are deleted. */
  async function read(
    attempt: Attempt,
    held: 'held' | 'perhaps' | 'hardly',
  ): Promise<StoredDoc | undefined | 'denied'> {
    const leaves = (how: CallOptions) => leavesOf(attempt.id, how)
    const found = await (held === 'hardly' ? retried(() => leaves({ signal })) : readHeld(leaves, held === 'held'))
    if (found.length === 0) return 'denied'
    const living = found.filter(({ _deleted }) => !_deleted).sort((a, b) => compareRevs(b._rev, a._rev))
    const current = living.find((leaf) => holdsClaim(attempt, leaf)) ?? living[0]
    return current && docOf(current)
  }

  /** As `database.leaves`, but repeats empty answers: a document that existed has at least a deleted leaf. */
  async function leavesOf(id: string, how: CallOptions): Promise<Leaf[]> {
    for (let tries = 1; ; tries++) {
      const found = await database.leaves(id, how)
      if (found.length > 0 || tries === MOST_DENIALS) return found
      await clock.sleep(fullJitter(backoff, tries, random), signal)
    }
  }

  return async (attempt, wanted, { onUnsure, write = byWriter } = {}) => {
    const wantsClaim = holdsClaim(attempt, wanted)
    let doc = wanted
    let unsure = false
    let sentAt: number | undefined
    const onSent = () => (attempt.provenAt = sentAt ??= clock.ticks()) // no other worker could see our claim earlier
    for (let tries = 1; ; tries++) {
      const base = attempt.doc
      const hadClaim = holdsClaim(attempt, base)
      const isNewClaim = wantsClaim && !hadClaim
      const newClaim = unsure ? { onSent } : { onSent, signal: closing } // a claim that may be stored must be resolved
      const options = isNewClaim ? newClaim : { first: hadClaim }
      const outcome = await tryWrite(attempt, doc, options, write)
      if (outcome.kind === 'accepted' && !hadClaim && !wantsClaim) {
        return (await tidy(attempt, base)) ? { kind: 'lost' } : outcome
      }
      if (outcome.kind !== 'conflict' && outcome.kind !== 'unknown') return outcome
      const error = outcome.kind === 'unknown' ? outcome.error : undefined
      if (error && !unsure) onUnsure?.()
      unsure ||= error !== undefined
      if (!unsure && !hadClaim && !wantsClaim) return { kind: 'lost' }
      if (error) {
        if (tries % TELL_TRIES === 0)
          log.warn({ doc: attempt.id, tries, code: error.code, reason: error.reason }, TROUBLE)
        await clock.sleep(fullJitter(backoff, tries, random), signal)
      }

      const found = await read(attempt, hadClaim ? 'held' : unsure ? 'perhaps' : 'hardly')
      const current = found === 'denied' ? undefined : found
      if (current?._rev === attempt.doc._rev) {
        if (isNewClaim && error?.rowOf && tries >= MOST_CLAIMS) return { kind: 'refused', failure: error }
        continue // the write did not arrive: send it again
      }
      if (isNewClaim) return { kind: unsure || (current && holdsClaim(attempt, current)) ? 'accepted' : 'lost' }
      if (found === 'denied') return { kind: 'lost' } // purged, or another database: no proof that our write is stored
      if (!current || !holdsClaim(attempt, current)) {
        // The document has moved on. If an unanswered write of ours was to release it, that write was stored.
        return unsure && !wantsClaim && !takenOver(attempt, current) ? { kind: 'stored' } : { kind: 'lost' }
      }
      doc = rebase(attempt.doc, doc, current) // another writer edited it: apply our change to that version
      attempt.doc = current
    }
  }
}

const TROUBLE = 'CouchDB has not confirmed a write yet; asking again until the outcome is known'

/** Whether another worker has rescued the entry: the document waits in our state, but not by a write of ours. */
function takenOver(attempt: Attempt, current: Doc | undefined): boolean {
  const docstate = current?.state === attempt.registration.state ? docstateOf(current) : undefined
  return docstate !== undefined && !!(docstate.claim ?? docstate.parked ?? docstate.failure?.code === 'lost')
}
