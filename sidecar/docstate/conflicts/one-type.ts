import type { StoredDoc } from '../../couch/documents.ts'
import { compareRevs } from '../../couch/documents.ts'
import { docstateOf, typesOf, type DispatchTable } from '../classify.ts'
import { isKnown } from './merge.ts'

/** Branches that are of the type which the document has, and those of others: a field of one means nothing in another. */
export interface OneType {
  readonly type: string
  readonly own: readonly StoredDoc[]
  readonly strange: readonly StoredDoc[]
}

/**
 * Which type a document has whose branches are of several. A declared one, in a state that its machine knows; of two such
 * the one that the sidecar has written, or else the one that was declared first. All else that was sent beside it does not
 * count, however long its branch is: by that a stolen device would take a document away from its machine. Undefined where
 * none of the types is ours.
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
    .sort((a, b) => compare(a.ranks, b.ranks) || compareRevs(b.leaf._rev, a.leaf._rev))
  if (!first) return undefined
  const { type } = first.leaf
  const isOwn = (leaf: StoredDoc) => leaf.type === type
  return { type: String(type), own: leaves.filter(isOwn), strange: leaves.filter((leaf) => !isOwn(leaf)) }
}

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((rank, at) => rank - b[at]!).find((difference) => difference !== 0) ?? 0
