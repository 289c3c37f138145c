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
 * belongs to no worker any more: one that comes back must not take the document for its own.
 */
export function ownerless(docstate: Docstate | undefined): Docstate | undefined {
  if (!docstate || !isClaim(docstate.claim) || docstate.claim.token.startsWith(OWNERLESS)) return docstate
  return { ...docstate, claim: { ...docstate.claim, token: `${OWNERLESS}${docstate.claim.token}` } }
}

/** The merged document, naming the revisions that are in it: a worker that finds one of them beside it takes it out. */
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

/**
 * What is wrong with the document that a resolver made of `ours` and another, as text: what JavaScript lets through and
 * the types do not. Undefined: nothing.
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
  Promise.resolve(made).catch(() => undefined) // nothing else waits for it
  return true
}

/** A module of handlers that runs in another realm has an `Object` of its own. */
function isPlain(made: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(made)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const nameOf = (made: unknown): string =>
  typeof made === 'object' && made !== null ? (Array.isArray(made) ? 'an array' : made.constructor.name) : String(made)
const textOf = (field: unknown): string => (typeof field === 'string' ? field : typeof field)

/**
 * What the engine knows of the entry, where two branches are made one in this state. Apart from whose fields count: the
 * branch with more edits may have kept what was true long ago, and what it does not know of would be run again.
 */
export function chooseDocstate({ ours, theirs, base }: Conflict, state: unknown): Docstate | undefined {
  const [a, b, before] = [ours, theirs, base].map((doc) => (doc?.state === state ? entryIn(doc) : undefined))
  if (ours.state !== theirs.state) return a ?? b
  const [aKept, bKept] = [a, b].map((one) => isDeepStrictEqual(one, before))
  const chosen = aKept !== bKept ? (aKept ? b : a) : rankOf(b) > rankOf(a) ? b : a
  return withEffects(chosen, a === chosen ? b : a)
}

/** `undefined` also for a field that says nothing but the state, and what was merged. */
function entryIn(doc: Doc | undefined): Docstate | undefined {
  const { merges: _, ...entry } = { ...(doc && docstateOf(doc)) } as Partial<Docstate>
  return Object.keys(entry).some((key) => key !== 'state') ? (entry as Docstate) : undefined
}

/** The further on, the more. What is in doubt goes before what would be tried again. */
function rankOf(entry: Docstate | undefined): number {
  if (!entry) return 0
  if (entry.handled) return 5
  if (entry.parked) return 4
  if (isClaim(entry.claim) && entry.claim.begun !== false) return 3
  return entry.failure || entry.retry_at ? 2 : 1
}

/** What was seen to happen on either branch is not repeated. */
function withEffects(chosen: Docstate | undefined, other: Docstate | undefined): Docstate | undefined {
  if (!chosen || chosen.entry !== other?.entry) return chosen
  const done = [...new Set([...effectsDone(chosen), ...effectsDone(other)])]
  return done.length > 0 ? { ...chosen, done } : chosen
}
