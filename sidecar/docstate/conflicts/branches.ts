import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import { withDocstate } from '../outcome-documents.ts'
import { compareRevs } from '../../couch/documents.ts'
import type { Docstate } from '../types.ts'
import type { Conflict } from './merge.ts'

/** Leaf revisions of a document, with the common ancestor of any two. */
export interface Branches {
  /** Leaves that are not deleted. The first is the one that CouchDB shows. */
  readonly leaves: readonly StoredDoc[]
  begin(a: StoredDoc, b: StoredDoc): Promise<Begin>
}

/** Common ancestor of two branches; `base` is undefined if CouchDB no longer has it. */
export type Begin = Pick<Conflict, 'base' | 'baseRev'>

/** Reads all branches of a document. Throws `CouchError`. */
export async function readBranches(database: Database, id: string, signal: AbortSignal): Promise<Branches> {
  const read = await database.leaves(id, { signal })
  const histories = new Map<string, readonly string[]>()
  const leaves = read
    .filter(({ _deleted }) => !_deleted)
    .map(({ _revisions, ...doc }) => {
      const { start, ids } = _revisions
      histories.set(
        doc._rev,
        ids.map((hash, at) => `${start - at}-${hash}`),
      )
      return doc
    })
    .sort((a, b) => compareRevs(b._rev, a._rev))
  return {
    leaves,
    async begin(a, b) {
      const known = new Set(histories.get(b._rev))
      const rev = histories.get(a._rev)?.find((one) => known.has(one))
      if (rev === undefined) return { base: undefined }
      const kept = await database.find(id, { rev }, { signal })
      const claimed = [a, b].find((leaf) => histories.get(leaf._rev)?.[1] === rev && isClaim(docstateOf(leaf)?.claim))
      return { base: kept ?? (claimed && { ...unclaimed(claimed), _rev: rev }), baseRev: rev }
    },
  }
}

/** Rebuilds the revision before a claim: a claim changes only `docstate`, and keeps its other fields. */
function unclaimed(leaf: StoredDoc): StoredDoc {
  const { claim: _, ...entry } = docstateOf(leaf) as Docstate
  return withDocstate(leaf, entry)
}
