import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import { withDocstate } from '../outcome-documents.ts'
import { compareRevs } from '../../couch/documents.ts'
import type { Docstate } from '../types.ts'
import type { Conflict } from './merge.ts'

/** The revisions of a document that stand beside each other, with the common beginning of any two. */
export interface Branches {
  /** Not the deleted ones. The first is what CouchDB shows. */
  readonly leaves: readonly StoredDoc[]
  begin(a: StoredDoc, b: StoredDoc): Promise<Begin>
}

/** In which revision two branches were one; `base` undefined where CouchDB does not have it any more. */
export type Begin = Pick<Conflict, 'base' | 'baseRev'>

/** Reads all of them. Throws `CouchError`. */
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

/** A claim changes nothing but the engine's field: the worker that claimed it wrote down what it was. */
function unclaimed(leaf: StoredDoc): StoredDoc {
  const { claim: _, ...entry } = docstateOf(leaf) as Docstate
  return withDocstate(leaf, entry)
}
