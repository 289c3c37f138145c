import type { IndexKind } from '../indexes-of.ts'
import type { Server } from '../server.ts'
import { ofNouveau, ofSearch } from './full-text.ts'
import type { Kind, Servers } from './kind.ts'
import { ofViewsWithCopies } from './view-copies.ts'
import { ofViews, ofViewsWithoutProgress } from './view.ts'

export type Kinds = Readonly<Partial<Record<IndexKind, Kind>>>

/** Kinds of indexes that this server can build. */
export function kindsOf({ features, nodes = [] }: Server, servers: Servers): Kinds {
  const ofCouch = nodes.length > 1 ? ofViewsWithCopies(servers) : ofViews(servers)
  return {
    view: features ? ofCouch : ofViewsWithoutProgress(servers),
    ...(features?.includes('search') && { search: ofSearch(servers) }),
    ...(features?.includes('nouveau') && { nouveau: ofNouveau(servers) }),
  }
}

/** Whether both have the same kinds with the same traits: a node may have become a cluster. */
export const areAlike = (some: Kinds, others: Kinds): boolean => namesOf(some) === namesOf(others)

const namesOf = (kinds: Kinds) =>
  Object.entries(kinds)
    .map(([name, { reportsProgress, hasCopies }]) => [name, reportsProgress, hasCopies].join())
    .join(' ')
