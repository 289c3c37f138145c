import { compareRevs } from '../../couch/documents.ts'
import { createHash } from 'node:crypto'
import type { Doc, Leaf, StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import type { Attempt } from '../attempt.ts'

/**
 * Judges leaves of a document that stand beside ours. Each copy of a cluster takes the first write that it sees. So the
 * writes of two workers can both be stored. This file has only pure functions; `contest.ts` acts.
 */

export const holdsClaim = (attempt: Attempt, doc: Doc): boolean => docstateOf(doc)?.claim?.token === attempt.token

/** The document of a leaf, as the base of a write. */
export function docOf(leaf: Leaf): StoredDoc {
  const { _revisions, ...doc } = leaf
  return doc
}

/** Whether the leaf descends from this revision. */
export function descends({ _revisions: { start, ids } }: Leaf, rev: string): boolean {
  const generation = parseInt(rev)
  return generation < start && ids[start - generation] === rev.slice(rev.indexOf('-') + 1)
}

/** Why a leaf was deleted. `yielded`: its own worker lost. `merged`: a worker merged all branches. */
type Why = 'yielded' | 'merged'

/**
 * Builds the leaves that delete `out`, and adds `kept`. Otherwise a copy that knows only a deleted leaf would briefly
 * lose the document. Workers that delete the same leaf for the same reason write the same revision.
 */
export function takingOut(out: readonly Leaf[], kept: readonly Leaf[], why: Why = 'yielded'): Leaf[] {
  const goes = out.map((leaf) => deletedAs(leaf, why))
  return [...kept.filter((leaf) => leaf._attachments === undefined), ...goes] // stubs cannot be merged
}

/** Builds the deleted leaf, with a mark that distinguishes it from a client's deletion. */
function deletedAs({ _id, _rev, _revisions, state, docstate }: Leaf, why: Why): Leaf {
  const start = _revisions.start + 1
  const hash = createHash('md5').update(`${why} ${_rev}`).digest('hex')
  return {
    ...{ _id, _rev: `${start}-${hash}`, _revisions: { start, ids: [hash, ..._revisions.ids] } },
    ...{ _deleted: true, state, docstate: { ...(docstate as object | undefined), state, [why]: true } },
  }
}

const wentAs = (leaf: Leaf, why: Why): boolean => leaf._deleted === true && docstateOf(leaf)?.[why] === true

/**
 * Decides about our claim, which may not be the only one, from all leaves.
 *
 * `yield`: another worker has gone on, or its claim comes after ours in CouchDB's order. `wait`: all rival claims come
 * before ours. A rival that won is renewed or saved; one that lost is withdrawn. `alone`: no rival exists.
 *
 * A merged claim was not withdrawn: its worker was silent for a lease, and may have won and run the handler. Our claim
 * never wins beside it. Our claim yields if any other leaf stays; otherwise it waits until it counts as lost.
 *
 * If all claims see each other, the last one stays. So they never all yield, which would delete the document.
 */
export function judgeClaim(ours: Leaf, base: string, leaves: readonly Leaf[]): 'yield' | 'wait' | 'alone' {
  const rivals = leaves.filter((leaf) => leaf._rev !== ours._rev && descends(leaf, base) && !wentAs(leaf, 'yielded'))
  if (rivals.length === 0) return 'alone'
  const isBefore = (leaf: Leaf) =>
    !leaf._deleted && isClaim(docstateOf(leaf)?.claim) && compareRevs(leaf._rev, ours._rev) < 0
  return rivals.every((leaf) => isBefore(leaf) || wentAs(leaf, 'merged')) ? 'wait' : 'yield'
}

/**
 * Returns the leaves to delete after a write without a claim that was stored below the quorum. Another worker may have
 * written beside us: it ran the safe handler, too, or rescued the same entry. Our leaf goes if a client wrote beside
 * it, or if another outcome comes after it. Otherwise earlier leaves with the same type and state go.
 */
export function judgeOutcome(ours: Leaf, base: StoredDoc, leaves: readonly Leaf[]): readonly Leaf[] {
  const rivals = leaves.filter(
    (leaf) => leaf._rev !== ours._rev && !leaf._deleted && descends(leaf, base._rev) && !docstateOf(leaf)?.claim,
  )
  const isClients = (leaf: Leaf) => leaf.state === base.state && !docstateOf(leaf)
  const isAfter = (leaf: Leaf) => compareRevs(leaf._rev, ours._rev) > 0
  if (rivals.some((leaf) => isClients(leaf) || isAfter(leaf))) return [ours]
  return rivals.filter(({ type, state }) => type === ours.type && state === ours.state)
}
