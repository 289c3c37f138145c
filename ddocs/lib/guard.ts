/**
 * Decides who may write what, by the table of machines. This part of `validate_doc_update` serves every database.
 * Clients may be hostile, so any write that the table does not list is refused. A client can change a document of a
 * declared type only by a listed transition.
 *
 * Revisions count, too. By replication, a client can send branches beside a document's history. CouchDB lets the longer
 * branch win, and shows only the known part of a branch. For an unknown branch it shows no old document; for a branch
 * with invented revisions in the middle, an early one. So each write must be the very next revision, and a new document
 * the first one. A client's branch then grows only by consecutive transitions without the sidecar, which sees only the
 * winning branch. If clients alone can go round in a machine, they can overtake the sidecar.
 *
 * These rules are for strangers. If only a user's own devices write, `mayHaveSteps` also accepts several offline steps
 * at once: replication brings only the last of them. If the former content is unknown, it accepts any state that a
 * device may write over some other state. Compaction removes the content at the start of a branch.
 */
import type { Machine, Machines, Writer } from '../machine.ts'
import { has, isObject, quote, type Doc, type UserCtx } from './document.ts'
import { same } from './same.ts'
import { A_TIME, isTime } from './time.ts'

export interface Write {
  readonly newDoc: Doc
  readonly oldDoc: Doc | null
  readonly userCtx: UserCtx
  readonly machines: Machines
  /** Several steps of a client may arrive as one write. */
  readonly mayHaveSteps?: boolean
}

/** The document that the write changes; null if the write creates one or replaces a deleted one. */
export const beforeOf = ({ oldDoc }: Pick<Write, 'oldDoc'>): Doc | null => (oldDoc && !oldDoc._deleted ? oldDoc : null)

/** Whether the write changes unknown content: the old revision was compacted, or never arrived. */
export const isUponUnknown = ({ newDoc, oldDoc }: Pick<Write, 'newDoc' | 'oldDoc'>): boolean =>
  !oldDoc && generationOf(newDoc) > 1

/** `_revisions.start` is the old revision's number in a plain write, and the new one's in a replicated write. */
const generationOf = ({ _revisions: revisions }: Doc): number =>
  isObject(revisions) && typeof revisions.start === 'number' ? revisions.start : 0

/** Adds `owner_role` if the client omits it: only the sidecar writes this field. */
export const withItsOwner = (doc: Doc, before: Doc | null): Doc =>
  before && doc.owner_role === undefined ? { ...doc, owner_role: before.owner_role } : doc

/** Why a client may not write this, as a sentence; undefined if the table allows it. Does not apply to admins. */
export function refusalOf(given: Write): string | undefined {
  const { newDoc, machines } = given
  const before = beforeOf(given)
  if (before && isHeld(before)) return 'this document is being handled; try again shortly'

  const guarded = machineOf(machines, before?.type) ? before?.type : newDoc.type
  const machine = machineOf(machines, guarded)
  if (!machine) return newDoc._deleted ? undefined : docstateRefusal(newDoc, before)

  const type = String(guarded)
  if (newDoc._deleted) return `${a(type)} document may be deleted by an admin only`
  if (newDoc.type !== type) return `${a(type)} document keeps its type; got type ${quote(newDoc.type)}`
  const { state } = newDoc
  if (typeof state !== 'string' || !has(machine, state)) {
    const present = Object.keys(machine).filter((name) => !machine[name]!.renamed)
    return `${a(type)} document has one of the states ${present.join(', ')}; got ${quote(state)}`
  }
  if (newDoc.docstate !== undefined && !isRemnant(newDoc, before)) {
    return 'the field docstate is written by the sidecar only; leave it out'
  }
  const write = { ...given, newDoc: byItsName(newDoc, machine) }
  const reason =
    before?.type === type ? changeRefusal(machine, byItsName(before, machine), write) : creationRefusal(machine, write)
  return reason ?? timeRefusal(machine, write.newDoc) ?? (write.mayHaveSteps ? undefined : revisionRefusal(write))
}

/** The document with its state's current name: a device with an earlier version of the app writes the former name. */
function byItsName(doc: Doc, machine: Machine): Doc {
  const { renamed } = (typeof doc.state === 'string' && has(machine, doc.state) && machine[doc.state]) || {}
  return renamed === undefined ? doc : { ...doc, state: renamed }
}

/** A state with a timeout at a document's time needs that time. */
function timeRefusal(machine: Machine, doc: Doc): string | undefined {
  const { timeout } = machine[String(doc.state)] ?? {}
  if (!timeout || !('at' in timeout) || isTime(doc[timeout.at])) return undefined
  return `${timeout.at}: expected ${A_TIME}, got ${quote(doc[timeout.at])}`
}

/** Whether `docstate` is the sidecar's entry of the former state: a client that rewrites the document may keep it. */
const isRemnant = ({ state, docstate }: Doc, before: Doc | null): boolean =>
  !!before && isObject(docstate) && docstate.state !== state && same(docstate, before.docstate)

/** The type with its article. */
const a = (type: unknown): string => `${/^[aeio]/i.test(String(type)) ? 'an' : 'a'} ${String(type)}`

/** The machine of a type; undefined if the type is not declared. */
const machineOf = (machines: Machines, type: unknown): Machine | undefined =>
  typeof type === 'string' && has(machines, type) ? machines[type] : undefined

/** Whether a worker has claimed the document in its current state. */
function isHeld({ state, docstate }: Doc): boolean {
  return isObject(docstate) && docstate.state === state && isObject(docstate.claim)
}

/** Clients may write documents of undeclared types freely, except for the sidecar's field `docstate`. */
function docstateRefusal(newDoc: Doc, before: Doc | null): string | undefined {
  if (newDoc.docstate === undefined) return undefined
  const stays = before && before.type === newDoc.type && before.state === newDoc.state
  if (stays && same(before.docstate, newDoc.docstate)) return undefined
  return 'the field docstate is written by the sidecar only; leave it out'
}

function creationRefusal(machine: Machine, write: Write): string | undefined {
  const { newDoc, mayHaveSteps } = write
  const type = String(newDoc.type)
  const nextOf = (state: string) => writableFrom(machine, state, false)
  const begins = beginsOf(machine)
  const isUnknown = mayHaveSteps && isUponUnknown(write)
  const first = isUnknown ? anyOf(machine, nextOf) : begins
  const writable = mayHaveSteps ? withSteps(first, nextOf) : begins
  if (writable.indexOf(String(newDoc.state)) >= 0) return undefined
  const what = isUnknown
    ? `${a(type)} document that is not known as it was may be written`
    : `a new ${type} document begins`
  return `${what} in state ${writable.join(' or ') || '(none: only the sidecar makes them)'}; got ${quote(newDoc.state)}`
}

function changeRefusal(machine: Machine, before: Doc, { newDoc, userCtx, mayHaveSteps }: Write): string | undefined {
  const from = String(before.state)
  const to = String(newDoc.state)
  const nextOf = (state: string) => writableFrom(machine, state, isOwner(userCtx, before))
  const first = mayHaveSteps && !has(machine, from) ? anyOf(machine, nextOf) : nextOf(from) // a state that is none heals
  const writable = mayHaveSteps ? withSteps(first, nextOf) : first
  if (writable.indexOf(to) >= 0) return handoverRefusal(machine, before, newDoc)
  const next = nextIn(machine, from)
  const allowed = Object.keys(next)
    .filter((state) => next[state] !== 'sidecar')
    .map((state) => (next[state] === 'owner' ? `${state} (by its owner)` : state))
  return `${a(newDoc.type)} document in state ${from} may be written in state ${allowed.join(' or ') || '(none)'}; got ${quote(to)}`
}

const beginsOf = (machine: Machine): string[] =>
  Object.keys(machine).filter((state) => machine[state]?.create === 'client')

/** The states that a client may write over a document of any state, or create. */
const anyOf = (machine: Machine, nextOf: (state: string) => string[]): string[] =>
  beginsOf(machine).concat(...Object.keys(machine).map(nextOf))

const nextIn = (machine: Machine, state: string): Readonly<Record<string, Writer>> =>
  (has(machine, state) && machine[state]?.next) || {}

/** The states that a client may write after this one. */
function writableFrom(machine: Machine, state: string, byOwner: boolean): string[] {
  const next = nextIn(machine, state)
  return Object.keys(next).filter((to) => next[to] === 'client' || (byOwner && next[to] === 'owner'))
}

/** These states, and all states that follow them by any number of steps. */
function withSteps(states: readonly string[], nextOf: (state: string) => readonly string[]): string[] {
  const reached: string[] = []
  const waiting = [...states]
  for (let state = waiting.shift(); state !== undefined; state = waiting.shift()) {
    if (reached.indexOf(state) >= 0) continue
    reached.push(state)
    waiting.push(...nextOf(state))
  }
  return reached
}

/** In a machine with owner's rights, a client must not make itself the owner. */
function handoverRefusal(machine: Machine, before: Doc, newDoc: Doc): string | undefined {
  const owned = Object.keys(machine).some((state) => {
    const next = machine[state]?.next ?? {}
    return Object.keys(next).some((target) => next[target] === 'owner')
  })
  const field = ['user', 'owner_role'].filter((name) => !same(before[name], newDoc[name]))[0]
  return owned && field
    ? `${field}: expected ${quote(before[field])} unchanged, got ${quote(newDoc[field])}`
    : undefined
}

/** Whether the user is the device itself, or another device of the same owner. Only the sidecar writes both fields. */
function isOwner({ name, roles }: UserCtx, { user, owner_role: role }: Doc): boolean {
  return (typeof user === 'string' && user === name) || (typeof role === 'string' && roles.indexOf(role) >= 0)
}

function revisionRefusal({ newDoc, oldDoc }: Write): string | undefined {
  const arrived = generationOf(newDoc)
  const known = oldDoc ? parseInt(String(oldDoc._rev), 10) : 0
  if (arrived <= known + 1) return undefined
  return `each change of ${a(newDoc.type)} document must arrive by itself; got revision ${arrived} after ${known}`
}
