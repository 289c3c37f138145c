import { isDeepStrictEqual } from 'node:util'
import type { Machine } from '../../../ddocs/machine.ts'
import { copyJson, jsonOf } from '../../core/copy.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import type { Begin } from './branches.ts'
import { checkMerged } from './check-merged.ts'
import { chooseDocstate } from './choose-docstate.ts'
import { withDocstate } from '../documents.ts'
import { compareTransitions, mergeFields, type Conflict, type Resolver } from './merge.ts'
import { mergeAttachments, sameAttachments } from './merge-attachments.ts'
import { compareRevs } from '../../couch/revs.ts'
import type { Docstate } from '../types.ts'

/** One of the revisions that stand beside the one which CouchDB shows. */
export interface Branch extends Begin {
  readonly leaf: StoredDoc
}

export interface FoldOptions {
  readonly machine: Machine | undefined
  /** Of the type; fields are merged where there is none, or where it fails. */
  readonly resolver: Resolver | undefined
  /** Why the type's own resolver did not count. */
  readonly onFault: (fault: unknown) => void
}

/** One document of all: what is to be written upon `shown`. Pure, and its attachments are stubs. */
export function fold(shown: StoredDoc, branches: readonly Branch[], options: FoldOptions): StoredDoc {
  let merged = shown
  for (const { leaf, ...begin } of branches) {
    const isOurs = compareTransitions(merged, leaf, begin.base, options.machine) <= 0
    const conflict = { ...(isOurs ? { ours: merged, theirs: leaf } : { ours: leaf, theirs: merged }), ...begin }
    const fields = Object.entries(fieldsOf(conflict, options)).filter(([name]) => !name.startsWith('_'))
    const made = { ...Object.fromEntries(fields), _id: shown._id, _rev: shown._rev } as StoredDoc
    const attachments = mergeAttachments(conflict)
    const _attachments = Object.keys(attachments).length > 0 ? { _attachments: attachments } : {}
    merged = withDocstate({ ...made, ..._attachments }, ownerless(chooseDocstate(conflict, made.state)))
  }
  return merged
}

/** A resolver gets copies: what it changes in them must not look like what was there before. */
function fieldsOf(conflict: Conflict, { machine, resolver, onFault }: FoldOptions): Doc {
  if (!resolver) return mergeFields(conflict)
  try {
    const made: unknown = resolver(copyJson(conflict))
    let fault = checkMerged(made, conflict.ours, machine)
    if (fault === undefined) {
      const plain = jsonOf(made)
      fault = checkMerged(plain, conflict.ours, machine) // a `toJSON` may have made another of it
      if (fault === undefined) return plain as Doc
    }
    onFault(fault)
  } catch (thrown) {
    onFault(thrown)
  }
  return mergeFields(conflict)
}

const OWNERLESS = 'merged:'

/**
 * A claim that is carried into a merged document was dead, and stands there so that its entry is parked or tried again. It
 * is nobody's any more: a worker that comes back must not take the document for its own.
 */
export function ownerless(docstate: Docstate | undefined): Docstate | undefined {
  if (!docstate || !isClaim(docstate.claim) || docstate.claim.token.startsWith(OWNERLESS)) return docstate
  return { ...docstate, claim: { ...docstate.claim, token: `${OWNERLESS}${docstate.claim.token}` } }
}

/** The merged document, naming the revisions that are in it: whoever finds one of them beside it takes it out. */
export function naming(merged: StoredDoc, branches: readonly StoredDoc[]): StoredDoc {
  const merges = branches.map(({ _rev }) => _rev).sort(compareRevs)
  return withDocstate(merged, { ...docstateOf(merged), state: merged.state as string, merges })
}

/** The leaves that a later one names as merged into it. A later one only, so that not all of them can be. */
export function mergedAlready(leaves: readonly StoredDoc[]): readonly StoredDoc[] {
  return leaves.filter(({ _rev }) =>
    leaves.some((other) => compareRevs(other._rev, _rev) > 0 && mergesOf(other).includes(_rev)),
  )
}

/** Whatever state it is in now: a document that came of the merged one has in it what that had. */
function mergesOf({ docstate }: Doc): readonly unknown[] {
  const { merges } = (docstate ?? {}) as { merges?: unknown }
  return Array.isArray(merges) ? merges : []
}

/** But for the order of fields, and the names of what was merged. */
export function sameDocument(a: StoredDoc, b: StoredDoc): boolean {
  return isDeepStrictEqual(plain(a), plain(b)) && sameAttachments(a, b)
}

function plain({ _attachments, _conflicts, ...doc }: StoredDoc): Doc {
  const { docstate } = doc as { docstate?: Partial<Docstate> }
  if (!docstate?.merges) return doc
  const { merges: _, ...entry } = docstate
  const isEmpty = Object.keys(entry).every((key) => key === 'state')
  return withDocstate<Doc>(doc, isEmpty ? undefined : (entry as Docstate))
}
