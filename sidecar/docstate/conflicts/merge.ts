import type { Machine } from '../../../ddocs/machine.ts'
import { compareRevs, type Doc, type StoredDoc } from '../../couch/documents.ts'
import { docstateOf, typesOf, type DispatchTable } from '../classify.ts'

/** Two conflicting revisions of a document. */
export interface Conflict {
  /** The branch whose transition counts. */
  readonly ours: StoredDoc
  readonly theirs: StoredDoc
  /** The common ancestor; undefined if CouchDB no longer has it. */
  readonly base: StoredDoc | undefined
  /** `_rev` of the ancestor, even if CouchDB has nothing else of it. Undefined if no common ancestor is known. */
  readonly baseRev?: string | undefined
}

/** Merges two revisions. Pure. The engine merges `docstate`, attachments, and fields that begin with `_`. */
export type Resolver = (conflict: Conflict) => Doc

/** Fields that describe the state: they come from the branch whose state counts. */
const OF_STATE = ['state', 'error', 'docstate']

/** Applies to `ours` the fields that `theirs` changed since the base. */
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

/** Compares two revisions by whose transition counts: negative if the first one's does. */
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
  /** 0 if the revision counts as written by the sidecar. */
  readonly rank: number
  readonly rev: string
}

/**
 * Ranks a revision. If the states differ, one that still waits for its handler counts as it was when its entry began.
 * Later notes of the sidecar and released claims do not show which state is right. Otherwise a claim that yielded to
 * another worker's outcome would win over that outcome, and the handler would run again.
 */
function standingOf(leaf: StoredDoc, asItBegan: boolean): Standing {
  const docstate = docstateOf(leaf)
  const { entry, claim, handled, parked, failed_in } = docstate ?? {}
  const waits = !claim && !handled && !parked && failed_in === undefined
  if (asItBegan && waits && typeof entry === 'string' && parseInt(entry) > 0) return { rank: 1, rev: entry }
  return { rank: docstate ? 0 : 1, rev: leaf._rev }
}

/** Whether the machine declares this state; true without a machine. */
export const isKnown = (machine: Machine | undefined, state: unknown): boolean =>
  machine === undefined || (typeof state === 'string' && Object.hasOwn(machine, state))

/** Whether `to` is reachable from `from` by any number of transitions. */
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

/** Branches of the document's type, and of other types: a field of one type means nothing in another. */
export interface OneType {
  readonly type: string
  readonly own: readonly StoredDoc[]
  readonly strange: readonly StoredDoc[]
}

/**
 * Chooses the type of a document whose branches are of several types. A declared type in a state of its machine goes
 * first. Then come the type that the sidecar wrote, and the type declared first. The length of a branch does not count:
 * otherwise a stolen device could take a document away from its machine. Undefined if none of the types has a handler
 * or a machine.
 */
export function oneType(leaves: readonly StoredDoc[], table: DispatchTable): OneType | undefined {
  const types = typesOf(table)
  const ranksOf = (leaf: StoredDoc): readonly number[] => {
    const type = String(leaf.type)
    const isOfMachine = Object.hasOwn(table.machines, type) && isKnown(table.machines[type], leaf.state)
    return [isOfMachine ? 0 : 1, docstateOf(leaf) ? 0 : 1, types.indexOf(type)]
  }
  const [first] = leaves
    .filter(({ type }) => typeof type === 'string' && types.includes(type))
    .map((leaf) => ({ leaf, ranks: ranksOf(leaf) }))
    .sort((a, b) => compareRanks(a.ranks, b.ranks) || compareRevs(b.leaf._rev, a.leaf._rev))
  if (!first) return undefined
  const { type } = first.leaf
  const isOwn = (leaf: StoredDoc) => leaf.type === type
  return { type: String(type), own: leaves.filter(isOwn), strange: leaves.filter((leaf) => !isOwn(leaf)) }
}

const compareRanks = (a: readonly number[], b: readonly number[]): number =>
  a.map((rank, at) => rank - b[at]!).find((difference) => difference !== 0) ?? 0
