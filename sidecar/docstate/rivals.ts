import type { Doc, Leaf, StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './assess.ts'
import type { Flight } from './flight.ts'

/**
 * Leaves of a document that stand beside ours. The copies of a cluster take the first write that each of them sees, so
 * that two workers can both have one stored. Only pure functions here; `contest.ts` acts.
 */

export const holdsClaim = (flight: Flight, doc: Doc): boolean => docstateOf(doc)?.claim?.token === flight.token

/** The document of a leaf, to be written upon. */
export function docOf(leaf: Leaf): StoredDoc {
  const { _revisions, ...doc } = leaf
  return doc as StoredDoc
}

/** As CouchDB orders leaves that are not deleted: it shows the last. */
export function compareRevs(a: string, b: string): number {
  const generations = parseInt(a) - parseInt(b)
  return generations !== 0 ? generations : a < b ? -1 : a > b ? 1 : 0
}

/** True if the leaf came of this revision. */
export function descends({ _revisions: { start, ids } }: Leaf, rev: string): boolean {
  const generation = parseInt(rev)
  return generation < start && ids[start - generation] === rev.slice(rev.indexOf('-') + 1)
}

/** What is left of a claim that was taken back: a deleted leaf, told from one that somebody deleted. */
export const yieldOf = ({ _id, _rev, state, docstate }: StoredDoc) => ({
  ...{ _id, _rev, _deleted: true, state },
  docstate: { ...(docstate as object), yielded: true },
})

const hasYielded = (leaf: Leaf): boolean => leaf._deleted === true && docstateOf(leaf)?.yielded === true

/**
 * What to do about a claim of ours that may not be the only one, seeing all leaves.
 *
 * `yield`: a worker has gone on, or its claim comes after ours in CouchDB's order. `wait`: there are only claims before
 * ours; each of them may have won, which shows when it is renewed or saved, or will be taken back. `alone`: no other.
 *
 * Of claims that all see each other the last one stays, so they never all leave, which would delete the document.
 */
export function judgeClaim(ours: Leaf, base: string, leaves: readonly Leaf[]): 'yield' | 'wait' | 'alone' {
  const rivals = leaves.filter((leaf) => leaf._rev !== ours._rev && descends(leaf, base) && !hasYielded(leaf))
  if (rivals.length === 0) return 'alone'
  const isBefore = (leaf: Leaf) => !leaf._deleted && docstateOf(leaf)?.claim && compareRevs(leaf._rev, ours._rev) < 0
  return rivals.every(isBefore) ? 'wait' : 'yield'
}
