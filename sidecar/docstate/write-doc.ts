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
import type { AskHeld } from './claims/ask-held.ts'
import { docOf, holdsClaim } from './claims/rivals.ts'
import { createTidy } from './claims/tidy.ts'

/** What became of a write on an attempt's document, once that is known. */
export type WriteResult =
  | { readonly kind: 'stored' }
  /** By fewer copies than the quorum. A claim: perhaps, and perhaps beside another worker's (`contest.ts`). */
  | { readonly kind: 'accepted' }
  /** Another writer has changed the document, and it is not ours any more. */
  | { readonly kind: 'lost' }
  /** CouchDB will never take this document, and says why; a new claim: not for now. */
  | { readonly kind: 'refused'; readonly failure: Failure }

/**
 * Writes `doc` over `attempt.doc` and updates it. Asks until the outcome is known: an answer that did not come may
 * have been a yes. Throws the signal's reason when there is no more time for asking.
 */
export type WriteDoc = (attempt: Attempt, doc: Doc, how?: HowToWrite) => Promise<WriteResult>

export interface HowToWrite {
  /** Called first when an answer did not come. */
  readonly onUnsure?: () => void
  /** Another way than by the writer. Throws `CouchError` where the outcome is unknown; what else it throws ends the asking. */
  readonly write?: (doc: StoredDoc) => Promise<Written>
}

export interface WriteDocOptions {
  readonly database: Database
  readonly writer: Writer
  readonly askHeld: AskHeld
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
  /** No claim is sent any more that cannot be there yet; its reason is thrown then. */
  readonly closing: AbortSignal
  readonly log: Logger
}

/** So often a claim of which CouchDB says alone that it cannot store it keeps its place; then others have their turn. */
const MOST_CLAIMS = 5
/** After so many tries of anything else, and again as many, it is told. */
const TELL_TRIES = 10

/** So often a server, or a proxy before it, has to say that a document is not there at all. */
const MOST_DENIALS = 4

const BACKOFF = { baseMs: 200, capMs: 15_000 }

export function createWriteDoc({
  database,
  writer,
  askHeld,
  clock,
  random,
  signal,
  closing,
  log,
}: WriteDocOptions): WriteDoc {
  const byWriter = (doc: StoredDoc, how: WriteOptions) => writer.write(doc, how)
  const tidy = createTidy({ database, clock, random, signal })

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

  /** What there is now: of several branches ours, as long as it is there; undefined where all are deleted. */
  async function read(
    attempt: Attempt,
    held: 'held' | 'perhaps' | 'hardly',
  ): Promise<StoredDoc | undefined | 'denied'> {
    const leaves = (how: CallOptions) => leavesOf(attempt.id, how)
    const ask = () => (held === 'hardly' ? leaves({ signal }) : askHeld(leaves, held === 'held'))
    const found = await withRetries(ask, { clock, random, signal })
    if (found.length === 0) return 'denied'
    const living = found.filter(({ _deleted }) => !_deleted).sort((a, b) => compareRevs(b._rev, a._rev))
    const current = living.find((leaf) => holdsClaim(attempt, leaf)) ?? living[0]
    return current && docOf(current)
  }

  /** As `database.leaves`. A document that was there has a leaf, if only a deleted one: it takes several to deny that. */
  async function leavesOf(id: string, how: CallOptions): Promise<Leaf[]> {
    for (let tries = 1; ; tries++) {
      const found = await database.leaves(id, how)
      if (found.length > 0 || tries === MOST_DENIALS) return found
      await clock.sleep(fullJitter(BACKOFF, tries, random), signal)
    }
  }

  return async (attempt, wanted, { onUnsure, write = byWriter } = {}) => {
    const wantsClaim = holdsClaim(attempt, wanted)
    let doc = wanted
    let unsure = false
    let sentAt: number | undefined
    const onSent = () => (attempt.provenAt = sentAt ??= clock.ticks()) // before that no other worker could see our claim
    for (let tries = 1; ; tries++) {
      const base = attempt.doc
      const hadClaim = holdsClaim(attempt, base)
      const isNewClaim = wantsClaim && !hadClaim
      const newClaim = unsure ? { onSent } : { onSent, signal: closing } // of one that may be there we have to know
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
        await clock.sleep(fullJitter(BACKOFF, tries, random), signal)
      }

      const found = await read(attempt, hadClaim ? 'held' : unsure ? 'perhaps' : 'hardly')
      const current = found === 'denied' ? undefined : found
      if (current?._rev === attempt.doc._rev) {
        if (isNewClaim && error?.rowOf && tries >= MOST_CLAIMS) return { kind: 'refused', failure: error }
        continue // it did not arrive: once more
      }
      if (isNewClaim) return { kind: unsure || (current && holdsClaim(attempt, current)) ? 'accepted' : 'lost' }
      if (found === 'denied') return { kind: 'lost' } // purged, or its database is another: it tells of no write of ours
      if (!current || !holdsClaim(attempt, current)) {
        // Gone on. If a write of ours went unanswered and was to let go of the document, that was it.
        return unsure && !wantsClaim && !takenOver(attempt, current) ? { kind: 'stored' } : { kind: 'lost' }
      }
      doc = rebase(attempt.doc, doc, current) // edited beside us: our change upon theirs
      attempt.doc = current
    }
  }
}

const TROUBLE = 'CouchDB has not confirmed a write yet; asking again until the outcome is known'

/** Another worker took our claim for dead: the document waits in our state, and not by a write of ours. */
function takenOver(attempt: Attempt, current: Doc | undefined): boolean {
  const docstate = current?.state === attempt.registration.state ? docstateOf(current) : undefined
  return docstate !== undefined && !!(docstate.claim ?? docstate.parked ?? docstate.failure?.code === 'lost')
}
