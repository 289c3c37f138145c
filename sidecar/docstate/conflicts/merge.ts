import type { Machine } from '../../../ddocs/machine.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { docstateOf } from '../classify.ts'
import { compareRevs } from '../../couch/documents.ts'

/** Two revisions of a document that stand beside each other. */
export interface Conflict {
  /** The one whose transition counts. */
  readonly ours: StoredDoc
  readonly theirs: StoredDoc
  /** The revision in which both began; undefined where CouchDB does not have it any more. */
  readonly base: StoredDoc | undefined
  /** Its `_rev`, also where CouchDB has no more of it than that. Undefined: they were never one, as far as is known. */
  readonly baseRev?: string | undefined
}

/** Makes one document of two. Pure. `docstate`, attachments and whatever begins with `_` are seen to. */
export type Resolver = (conflict: Conflict) => Doc

/** What says in which state the document is: goes with the state. */
const OF_STATE = ['state', 'error', 'docstate']

/** The fields of `theirs` that were changed since the base, upon `ours`. */
export const mergeFields: Resolver = ({ ours, theirs, base }) => {
  const merged: Record<string, unknown> = { ...ours }
  for (const field of new Set([...Object.keys(theirs), ...Object.keys(base ?? {})])) {
    if (field.startsWith('_') || OF_STATE.includes(field)) continue
    if (base && JSON.stringify(base[field]) === JSON.stringify(theirs[field])) continue
    if (theirs[field] === undefined) delete merged[field]
    else merged[field] = theirs[field]
  }
  return merged as Doc
}

/** Which of two revisions has made the transition that counts: negative if the first has. */
export function compareTransitions(a: StoredDoc, b: StoredDoc, base: StoredDoc | undefined, machine?: Machine): number {
  if (a.state !== b.state) {
    const [aIsKnown, bIsKnown] = [isKnown(machine, a.state), isKnown(machine, b.state)]
    if (aIsKnown !== bIsKnown) return aIsKnown ? -1 : 1
    if (base && a.state === base.state) return 1
    if (base && b.state === base.state) return -1
    const [aFromB, bFromA] = [isReachable(machine, b.state, a.state), isReachable(machine, a.state, b.state)]
    if (aFromB !== bFromA) return aFromB ? -1 : 1
  }
  const [ofA, ofB] = [a, b].map((leaf) => standingOf(leaf, a.state !== b.state)) as [Standing, Standing]
  return ofA.rank - ofB.rank || compareRevs(ofB.rev, ofA.rev)
}

interface Standing {
  /** 0 if the sidecar has written it. */
  readonly rank: number
  readonly rev: string
}

/**
 * Of two states the one that still waits for its handler is as it was when its entry began: what the sidecar noted since,
 * and the revisions of claims that it gave back, say nothing about which is right. Else a claim that gave way to what
 * another worker had finished would win over that, and the handler would run again.
 */
function standingOf(leaf: StoredDoc, asItBegan: boolean): Standing {
  const docstate = docstateOf(leaf)
  const { entry, claim, handled, parked, failed_in } = docstate ?? {}
  const waits = !claim && !handled && !parked && failed_in === undefined
  if (asItBegan && waits && typeof entry === 'string' && parseInt(entry) > 0) return { rank: 1, rev: entry }
  return { rank: docstate ? 0 : 1, rev: leaf._rev }
}

/** Whether a document can be in this state, as far as its machine says. */
export const isKnown = (machine: Machine | undefined, state: unknown): boolean =>
  machine === undefined || (typeof state === 'string' && Object.hasOwn(machine, state))

/** Whether `to` comes after `from`, by any number of transitions. */
function isReachable(machine: Machine | undefined, from: unknown, to: unknown): boolean {
  const seen = new Set<unknown>()
  const next = [from]
  while (machine && next.length > 0) {
    const state = next.pop()
    if (seen.has(state) || typeof state !== 'string' || !Object.hasOwn(machine, state)) continue
    seen.add(state)
    const { next: targets = {}, timeout, renamed } = machine[state]!
    const following = [...Object.keys(targets), ...(timeout ? [timeout.next] : []), ...(renamed ? [renamed] : [])]
    if (following.includes(String(to))) return true
    next.push(...following)
  }
  return false
}
