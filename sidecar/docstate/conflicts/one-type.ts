import type { StoredDoc } from '../../couch/documents.ts'
import { compareRevs } from '../../couch/documents.ts'
import { docstateOf, typesOf, type DispatchTable } from '../classify.ts'
import { isKnown } from './merge.ts'

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
    .sort((a, b) => compare(a.ranks, b.ranks) || compareRevs(b.leaf._rev, a.leaf._rev))
  if (!first) return undefined
  const { type } = first.leaf
  const isOwn = (leaf: StoredDoc) => leaf.type === type
  return { type: String(type), own: leaves.filter(isOwn), strange: leaves.filter((leaf) => !isOwn(leaf)) }
}

const compare = (a: readonly number[], b: readonly number[]): number =>
  a.map((rank, at) => rank - b[at]!).find((difference) => difference !== 0) ?? 0
