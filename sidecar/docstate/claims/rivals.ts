import { compareRevs } from '../../couch/documents.ts'
import { createHash } from 'node:crypto'
import type { Doc, Leaf, StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import type { Attempt } from '../attempt.ts'

/**
 * Leaves of a document that stand beside ours. The copies of a cluster take the first write that each of them sees, so
 * that two workers can both have one stored. Only pure functions here; `contest.ts` acts.
 */

export const holdsClaim = (attempt: Attempt, doc: Doc): boolean => docstateOf(doc)?.claim?.token === attempt.token

/** The document of a leaf, to be written upon. */
export function docOf(leaf: Leaf): StoredDoc {
  const { _revisions, ...doc } = leaf
  return doc
}

/** True if the leaf came of this revision. */
export function descends({ _revisions: { start, ids } }: Leaf, rev: string): boolean {
  const generation = parseInt(rev)
  return generation < start && ids[start - generation] === rev.slice(rev.indexOf('-') + 1)
}

/** `yielded`: by the worker that wrote it, which lost. `merged`: by the worker that made one document of all branches. */
type Why = 'yielded' | 'merged'

/**
 * What is written to take these leaves out, and `kept` with them: a copy that knows only of one that goes would lose the
 * document for a moment. Workers that take out the same leaf for the same reason write the same revision.
 */
export function takingOut(out: readonly Leaf[], kept: readonly Leaf[], why: Why = 'yielded'): Leaf[] {
  const goes = out.map((leaf) => deletedAs(leaf, why))
  return [...kept.filter((leaf) => leaf._attachments === undefined), ...goes] // stubs cannot be merged
}

/** What is left of a leaf that was taken out: a deleted one, told apart from one that a client deleted. */
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
 * What to do about a claim of ours that may not be the only one, seeing all leaves.
 *
 * `yield`: a worker has gone on, or its claim comes after ours in CouchDB's order. `wait`: there are only claims before
 * ours; each of them may have won, which shows when it is renewed or saved, or will be taken back. `alone`: no other.
 *
 * A claim that was merged was not taken back: its worker was silent for a lease, and may have won and run the handler.
 * Ours never wins beside it. It goes if anything else stays; if not, it waits until it is given up for lost.
 *
 * Of claims that all see each other the last one stays, so they never all leave, which would delete the document.
 */
export function judgeClaim(ours: Leaf, base: string, leaves: readonly Leaf[]): 'yield' | 'wait' | 'alone' {
  const rivals = leaves.filter((leaf) => leaf._rev !== ours._rev && descends(leaf, base) && !wentAs(leaf, 'yielded'))
  if (rivals.length === 0) return 'alone'
  const isBefore = (leaf: Leaf) =>
    !leaf._deleted && isClaim(docstateOf(leaf)?.claim) && compareRevs(leaf._rev, ours._rev) < 0
  return rivals.every((leaf) => isBefore(leaf) || wentAs(leaf, 'merged')) ? 'wait' : 'yield'
}

/**
 * What to do after a write that was not upon a claim and was stored below the quorum: who else handled the document
 * safely, or found the same worker dead, may have written beside us. Answers the leaves that are to go: ours if a
 * client wrote beside it, or if another outcome comes after it; otherwise those before it that say the same.
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
