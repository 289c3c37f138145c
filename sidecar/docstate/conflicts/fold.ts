import { isDeepStrictEqual } from 'node:util'
import type { Machine } from '../../../ddocs/machine.ts'
import { copyJson, jsonOf } from '../../core/copy.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import type { Begin } from './branches.ts'
import { withDocstate } from '../outcome-documents.ts'
import { compareTransitions, mergeFields, type Conflict, type Resolver, isKnown } from './merge.ts'
import { mergeAttachments, sameAttachments } from './merge-attachments.ts'
import { compareRevs } from '../../couch/documents.ts'
import type { Docstate } from '../types.ts'
import { effectsDone } from '../attempt.ts'

/** A leaf beside the one that CouchDB shows. */
export interface Branch extends Begin {
  readonly leaf: StoredDoc
}

export interface FoldOptions {
  readonly machine: Machine | undefined
  /** Resolver of the type. Without one, or if it fails, the fields are merged by default. */
  readonly resolver: Resolver | undefined
  /** Receives the fault of a resolver whose result is ignored. */
  readonly onFault: (fault: unknown) => void
}

/** Merges all branches into one document, to be written on `shown`. Pure; its attachments are stubs. */
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

/** Merges fields. A resolver gets copies: its changes in place must not alter the branches. */
function fieldsOf(conflict: Conflict, { machine, resolver, onFault }: FoldOptions): Doc {
  if (!resolver) return mergeFields(conflict)
  try {
    const made: unknown = resolver(copyJson(conflict))
    let fault = checkMerged(made, conflict.ours, machine)
    if (fault === undefined) {
      const plain = jsonOf(made)
      fault = checkMerged(plain, conflict.ours, machine) // a `toJSON` may have changed the document
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
 * Marks the claim of a merged document as belonging to no worker. Such a claim was dead, and stays so that its entry is
 * parked or tried again. If its worker comes back, it must not treat the document as its own.
 */
export function ownerless(docstate: Docstate | undefined): Docstate | undefined {
  if (!docstate || !isClaim(docstate.claim) || docstate.claim.token.startsWith(OWNERLESS)) return docstate
  return { ...docstate, claim: { ...docstate.claim, token: `${OWNERLESS}${docstate.claim.token}` } }
}

/** Names the merged revisions in the document: a worker that finds one of them beside it deletes that leaf. */
export function naming(merged: StoredDoc, branches: readonly StoredDoc[]): StoredDoc {
  const merges = branches.map(({ _rev }) => _rev).sort(compareRevs)
  return withDocstate(merged, { ...docstateOf(merged), state: merged.state as string, merges })
}

/** Returns the leaves that a later leaf names as merged. Only later leaves count, so that the last one always stays. */
export function mergedAlready(leaves: readonly StoredDoc[]): readonly StoredDoc[] {
  return leaves.filter(({ _rev }) =>
    leaves.some((other) => compareRevs(other._rev, _rev) > 0 && mergesOf(other).includes(_rev)),
  )
}

/** Reads `merges` in any state: every descendant of the merged document contains the merged revisions. */
function mergesOf({ docstate }: Doc): readonly unknown[] {
  const { merges } = (docstate ?? {}) as { merges?: unknown }
  return Array.isArray(merges) ? merges : []
}

/** Whether documents are equal, apart from the order of fields and the names of merged revisions. */
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

/**
 * Describes the fault of the document that a resolver made from `ours` and another; undefined if none. It checks what
 * the types forbid but JavaScript allows.
 */
export function checkMerged(made: unknown, ours: Doc, machine?: Machine): string | undefined {
  if (typeof made !== 'object' || made === null) return `expected a document, got ${nameOf(made)}`
  if (isPromise(made)) return 'expected a document, got a promise: a resolver is not async'
  if (Array.isArray(made) || !isPlain(made)) return `expected a document, got ${nameOf(made)}`
  const { type, state } = made as Partial<Doc>
  if (type !== ours.type) return `expected type ${textOf(ours.type)}, got ${textOf(type)}`
  if (typeof ours.state === 'string' && typeof state !== 'string') return `expected a state, got ${textOf(state)}`
  if (isKnown(machine, ours.state) && !isKnown(machine, state))
    return `expected a state of the machine, got ${textOf(state)}`
  try {
    JSON.stringify(made)
    return undefined
  } catch (thrown) {
    return `expected a document with JSON: ${(thrown as Error).message}`
  }
}

function isPromise(made: object): boolean {
  if (typeof (made as { then?: unknown }).then !== 'function') return false
  Promise.resolve(made).catch(() => undefined) // nothing else handles its rejection
  return true
}

/** Whether an object is plain, in any realm: a module of handlers in another realm has its own `Object`. */
function isPlain(made: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(made)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const nameOf = (made: unknown): string =>
  typeof made === 'object' && made !== null ? (Array.isArray(made) ? 'an array' : made.constructor.name) : String(made)
const textOf = (field: unknown): string => (typeof field === 'string' ? field : typeof field)

/**
 * Chooses the `docstate` of two branches that are merged in this state, whichever branch's fields count. The branch
 * with more edits may have an outdated `docstate`: work that it does not record would run again.
 */
export function chooseDocstate({ ours, theirs, base }: Conflict, state: unknown): Docstate | undefined {
  const [a, b, before] = [ours, theirs, base].map((doc) => (doc?.state === state ? entryIn(doc) : undefined))
  if (ours.state !== theirs.state) return a ?? b
  const [aKept, bKept] = [a, b].map((one) => isDeepStrictEqual(one, before))
  const chosen = aKept !== bKept ? (aKept ? b : a) : rankOf(b) > rankOf(a) ? b : a
  return withEffects(chosen, a === chosen ? b : a)
}

/** `docstate` of a document without `merges`; `undefined` if only the state is left. */
function entryIn(doc: Doc | undefined): Docstate | undefined {
  const { merges: _, ...entry } = { ...(doc && docstateOf(doc)) } as Partial<Docstate>
  return Object.keys(entry).some((key) => key !== 'state') ? (entry as Docstate) : undefined
}

/** Ranks an entry: the further on, the higher. A doubtful entry ranks above one that would be tried again. */
function rankOf(entry: Docstate | undefined): number {
  if (!entry) return 0
  if (entry.handled) return 5
  if (entry.parked) return 4
  if (isClaim(entry.claim) && entry.claim.begun !== false) return 3
  return entry.failure || entry.retry_at ? 2 : 1
}

/** Keeps the effects that either branch records, so that none is repeated. */
function withEffects(chosen: Docstate | undefined, other: Docstate | undefined): Docstate | undefined {
  if (!chosen || chosen.entry !== other?.entry) return chosen
  const done = [...new Set([...effectsDone(chosen), ...effectsDone(other)])]
  return done.length > 0 ? { ...chosen, done } : chosen
}
